"""What differs between two jobs: by name, and along call paths on the critical path."""

from htagraph.differences.compare import compare
from htagraph.differences.diff import Diff, diff

__all__ = ["Diff", "compare", "diff"]
