"""Kineto's files, which PyTorch's profiler writes: JSON, maybe gzipped, of one process each."""
