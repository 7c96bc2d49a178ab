"""What memory was used when: profiler events in a graph, exported timelines, and allocator snapshots."""
