"""Other files of the profiler: memory timelines and snapshots, execution traces."""
