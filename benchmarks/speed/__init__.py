"""What `benchmarks/run.py` measures: traces of several sizes, processes in rounds, figures, their history and page."""
