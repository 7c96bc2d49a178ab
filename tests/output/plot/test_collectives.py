from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from tests.reach import DATA, graph_of

TABLE = hg.collectives(graph_of(DATA / "demo"))
PARTS = ["beside_us", "wait_us", "transfer_us", "excess_us", "wait_or_transfer_us"]


def test_the_parts_sum_to_the_time_in_collectives() -> None:
    bars = [trace for trace in hg.plot.collectives(TABLE).data if trace.type == "bar"]
    assert sum(bar.y.sum() for bar in bars) == pytest.approx(TABLE["duration_us"].sum() / 1000)


def test_the_picture_of_waiting_holds_all_of_it() -> None:
    (picture,) = (trace for trace in hg.plot.collectives(TABLE).data if trace.type == "heatmap")
    column_ms = float(picture.x[1] - picture.x[0])
    waited = np.nansum(np.array(picture.z), axis=1) / 100 * column_ms
    assert waited.tolist() == pytest.approx((TABLE.groupby("rank")["wait_us"].sum() / 1000).tolist(), abs=1e-6)


def test_the_title_sums_over_ranks() -> None:
    title = hg.plot.collectives(TABLE).layout.title.text
    assert title.startswith("Ranks wait 13.5 ms for each other in 6 collectives, and transfer 30.9 ms<br>")
    assert TABLE["wait_us"].sum() == pytest.approx(13_500, abs=50)


def test_what_has_no_partner_is_called_neither() -> None:
    alone = TABLE.assign(collective=-1, wait_or_transfer_us=TABLE["duration_us"], wait_us=0.0, transfer_us=0.0)
    title = hg.plot.collectives(alone.assign(excess_us=0.0)).layout.title.text
    assert "waits are not known" in title


def test_512_ranks_are_two_pictures() -> None:
    many = pd.concat([TABLE.head(1).assign(rank=rank) for rank in range(512)], ignore_index=True)
    assert [trace.type for trace in hg.plot.collectives(many).data] == ["heatmap", "heatmap"]
