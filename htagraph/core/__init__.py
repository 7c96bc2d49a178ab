"""Vocabulary and work on arrays: what needs nothing of traces or graphs."""
