"""Whether the words of start-up, odd steps and missing devices agree in number."""

from __future__ import annotations

from htagraph.findings.claim import Claim, Says
from htagraph.findings.conclusions.warm_up_sentences import IN_A_CLAUSE, WHOLE, is_start_up


def test_more_first_calls_are_counted_and_more_steps_too() -> None:
    calls = (("a", 3e6), ("b", 2e6), ("c", 1e6), ("d", 1e6))
    text = WHOLE[Says.START_UP](Claim(Says.START_UP, "a", 99.8, "percent", facts={"calls": calls}))
    assert text.startswith("Start-up is over 99 % of the critical path")
    assert "of a (3.00 s), b (2.00 s) and 2 more. To see" in text
    facts = {"odd": (1, 2, 3, 4, 5), "low_us": 1000.0, "high_us": 2000.0, "usual_us": 100.0}
    claim = Claim(Says.UNEVEN_STEPS, "", 5, "count", facts=facts)
    assert IN_A_CLAUSE[Says.UNEVEN_STEPS](claim).startswith(
        "5 steps take 1.00 ms to 2.00 ms, the others about 100.0 µs"
    )
    assert WHOLE[Says.UNEVEN_STEPS](claim).endswith("(--steps reads only some).")
    assert WHOLE[Says.NO_DEVICE_WORK](Claim(Says.NO_DEVICE_WORK, "", 0, "count")).startswith(
        "Nothing that a device did"
    )


def test_a_gain_is_start_up_if_most_of_it_is() -> None:
    gain = Claim(Says.GAIN, "x", 100.0, "us", facts={"start_up_us": 60.0})
    assert is_start_up(gain)
    assert not is_start_up(Claim(Says.GAIN, "x", 100.0, "us"))
