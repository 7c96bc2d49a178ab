"""trace_handler: what a profiler calls with a finished recording, to have it written as htagraph reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htagraph.trace.recording.files import folder_of, rank_of_process, write_packed

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TraceHandler", "trace_handler"]


class TraceHandler:
    """Writes each recording that it is called with into a folder."""

    def __init__(self, folder: Path, rank: int | None) -> None:
        self.folder = folder
        self.rank = rank
        self.written: list[Path] = []
        """The files that were written, in order."""

    def __call__(self, profiler: Any) -> None:  # noqa: ANN401 - torch.profiler.profile
        """Write what a profiler has recorded."""
        rank = rank_of_process() if self.rank is None else self.rank
        number = len(self.written) + 1
        folder = self.folder if number == 1 else self.folder / f"recording-{number}"
        target = folder / f"rank-{rank}.json.gz"
        write_packed(target, profiler.export_chrome_trace)
        self.written.append(target)


def trace_handler(out: str | os.PathLike[str] = "traces", *, rank: int | None = None) -> Callable[[Any], None]:
    """Return what `torch.profiler.profile` calls as ``on_trace_ready``: it writes a file per rank, packed and whole.

    For profilers that are set up elsewhere: by hand, or by Lightning, Hugging Face or another framework. A schedule
    that repeats gives several recordings; the second one is written to ``recording-2/`` inside the folder, and so on,
    because files in one folder are one job.

    Args:
        out: the folder, made if it is not there. Files of the same rank in it are replaced.
        rank: the rank of this process; if not given, that of `torch.distributed` at the time of writing, else of the
            environment (``RANK``, ``SLURM_PROCID``, ``OMPI_COMM_WORLD_RANK``, ``PMI_RANK``), else 0.

    Returns:
        A function of the profiler.

    Raises:
        HtagraphError: `out` is no folder that can be written to.

    Example:
        >>> import tempfile
        >>> import htagraph as hg
        >>> handler = hg.trace_handler(tempfile.mkdtemp())
        >>> torch.profiler.profile(record_shapes=True, on_trace_ready=handler)  # doctest: +SKIP
    """
    return TraceHandler(folder_of(out), rank)
