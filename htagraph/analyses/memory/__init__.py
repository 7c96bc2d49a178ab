"""``hg.memory``: what memory was used for, from traces, and from the files that torch writes about memory alone."""

from htagraph.analyses.memory.at_peak import at_peak
from htagraph.analyses.memory.peaks import peaks
from htagraph.analyses.memory.timeline import timeline
from htagraph.trace.profiler_files.files import read_memory_timeline as read_timeline
from htagraph.trace.profiler_files.memory_snapshot import MemorySnapshot as Snapshot
from htagraph.trace.profiler_files.memory_snapshot import read_memory_snapshot as read_snapshot

__all__ = ["Snapshot", "at_peak", "peaks", "read_snapshot", "read_timeline", "timeline"]
