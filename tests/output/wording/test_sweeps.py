"""What ``htagraph what-if --sweep`` says."""

from __future__ import annotations

import pandas as pd

from htagraph.output.wording.sweeps import sentences


def test_points_the_shortest_step_and_both_slopes_are_said() -> None:
    table = pd.DataFrame({"factor": [2.0, 0.5, 1.0], "mean_step_us": [20.0, 9.0, 10.0]})
    assert sentences(table, "network", 10.0) == [
        "Tried: 3 factors from 0.5 to 2 for network, each replayed.",
        "The shortest step takes 9.0 µs at 0.5; recorded: 10.0 µs.",
        "Per 0.1 of the factor, a step changes by 0.2 µs between 0.5 and 1 and by 1.0 µs between 1 and 2.",
    ]
