"""The profiler's other files: memory timelines, memory snapshots and execution traces."""
