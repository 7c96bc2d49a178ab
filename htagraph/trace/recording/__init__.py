"""Recording: the profiler of PyTorch with the settings that the analyses need. PyTorch is imported when it is used.

    >>> from htagraph.trace.recording import profile, trace_handler

needs nothing but PyTorch, so it also works in training images that have none of htagraph's other dependencies.
"""

from htagraph.trace.recording.profile import profile, trace_handler

__all__ = ["profile", "trace_handler"]
