"""A caution: device work covers only a part of the recording."""

from __future__ import annotations

from htagraph.findings.device_idle import DEVICE_IDLE, device_window_us
from htagraph.findings.finding import BarPart, Chart, Claim, Evidence, Finding
from htagraph.findings.limits import LARGE_SHARE
from htagraph.findings.results import Results

__all__ = ["PARTLY_DEVICE"]


def _when(results: Results) -> list[Claim]:
    """Claim it where idle device time has a sentence, which is a share of the covered time."""
    ranks = results.busy.loc[results.busy["executor"] == "device", "rank"]
    window = device_window_us(results)
    span = float(results.inputs.loc[results.inputs["rank"].isin(ranks), "span_us"].sum())
    if not results.claims(DEVICE_IDLE.when) or window >= (1 - LARGE_SHARE) * span:
        return []
    return [Claim("partly_device", "", 100 * window / span, "percent")]


def _evidence(results: Results, _claim: Claim) -> Evidence:
    spans = results.inputs.set_index("rank")["span_us"]
    busy = results.temporal[results.temporal["executor"] == "device"]
    stacks = [
        (f"rank {rank}", [
            BarPart("first to last device work", "computation", us),
            BarPart("host only", "idle", max(spans[rank] - us, 0.0)),
        ])
        for rank, us in zip(busy["rank"].tolist(), busy["window_us"].tolist(), strict=True)
    ]  # fmt: skip
    return Evidence(Chart("Recorded time of each rank", stacks=stacks))


PARTLY_DEVICE = Finding(
    "partly_device",
    when=_when,
    short=lambda claim: f"device work spans {claim.figure:.0f} % of the recording, and idle times leave out the rest",
    evidence=_evidence,
    is_caution=True,
)
