"""``hg.execution_trace``: Chakra execution traces, which describe the operators that a Kineto trace times."""

from htagraph.queries.arguments import link_execution_trace as link
from htagraph.trace.profiler_files.files import read_execution_trace as read

__all__ = ["link", "read"]
