"""What differs between two jobs: by name, and along call paths on the critical path."""

from htagraph.analyses.differences.compare import compare
from htagraph.analyses.differences.diff import Diff, diff

__all__ = ["Diff", "compare", "diff"]
