"""What files say: the schema of events, their reading, the columns they become, and other files of the profiler."""
