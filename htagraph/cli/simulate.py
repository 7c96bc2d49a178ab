"""``htagraph simulate``: traces of a simulated job, whose true answers are known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["simulate"]


def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to; created if it does not exist.")],
    ranks: Annotated[int | None, typer.Option(min=1, help="Processes, one GPU each.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps.")] = None,
    regime: Annotated[
        str, typer.Option(help="What bounds the job: gpu_bound, host_bound, communication_bound, straggler, …")
    ] = "balanced",
    events: Annotated[int | None, typer.Option(min=1000, help="Write about this many events instead.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A Job field, such as kernel_us=300.")] = None,
) -> None:
    """Write the traces of a simulated training job, and the true answers about it in DIR/truth."""
    from pydantic import ValidationError

    from htagraph.core.words import nearest_words
    from htagraph.simulate import REGIMES, Job, scale_job, write_stream
    from htagraph.simulate import simulate as simulated

    if regime not in REGIMES:
        msg = f"there is no regime {regime!r}: choose from {', '.join(REGIMES)}{nearest_words(regime, REGIMES)}"
        raise typer.BadParameter(msg, param_hint="--regime")
    given = {name: value for name, value in (("ranks", ranks), ("steps", steps)) if value is not None}
    try:
        base = scale_job(events, ranks=ranks or 1) if events else REGIMES[regime]()
        job = Job.model_validate(base.model_dump() | given | _settings(settings or []))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        nearest = nearest_words(field, Job.model_fields) if first["type"] == "extra_forbidden" else ""
        msg = f"{field}: {first['msg']}{nearest}"
        raise typer.BadParameter(msg, param_hint="--set") from error
    if events:
        typer.echo(f"{write_stream(job, output)} events in {output}", err=True)
        return
    files = simulated(job).write(output)
    typer.echo(f"{len(files)} traces in {output}, the truth in {output / 'truth'}", err=True)


def _settings(pairs: list[str]) -> dict[str, str]:
    """Return ``name=value`` options as a dict; pydantic reads the values."""
    for pair in pairs:
        if "=" not in pair:
            msg = f"{pair!r} is not of the form name=value"
            raise typer.BadParameter(msg, param_hint="--set")
    return dict((pair.split("=", 1)[0], pair.split("=", 1)[1]) for pair in pairs)
