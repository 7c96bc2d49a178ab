"""What a thread or stream runs on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from htagraph.hta.common.types import DeviceType, infer_device_type, is_device_lane


@pytest.mark.parametrize(
    ("pid", "tid", "streams", "kind"),
    [(5, 9, [-1, -1], DeviceType.CPU), (5, 7, [7, 7], DeviceType.GPU), (0, 9, [-1], DeviceType.GPU),
     (5, 9, [-1, 7], DeviceType.UNKNOWN)],
)  # fmt: skip
def test_the_device_is_inferred(pid: int, tid: int, streams: list[int], kind: DeviceType) -> None:
    assert infer_device_type(pd.DataFrame({"pid": pid, "tid": tid, "stream": streams})) == kind
    if pid:
        assert infer_device_type(pd.DataFrame({"stream": streams})) == kind


def test_streams_and_device_tracks_are_no_threads() -> None:
    assert is_device_lane(5, 7, np.array([7, 7]))
    assert is_device_lane(0, 7, np.array([-1]))
    assert not is_device_lane(5, 7, np.array([-1, 7]))
