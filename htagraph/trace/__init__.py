"""Trace files: the schema of their events, reading them into columns, and the profiler's other files."""
