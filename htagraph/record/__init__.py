"""Recording: the profiler of PyTorch with the settings that the analyses need. PyTorch is imported when it is used.

    >>> from htagraph.record import profile, trace_handler

needs nothing but PyTorch, so it also works in training images that have none of htagraph's other dependencies.
"""

from htagraph.record.profile import profile
from htagraph.record.trace_handler import trace_handler

__all__ = ["profile", "trace_handler"]
