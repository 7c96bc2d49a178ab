"""HTA's import paths: write `htagraph.hta` for `hta`, and a notebook made for Holistic Trace Analysis runs on htagraph.

`trace_analysis`, `trace_diff`, `memory_analysis`, `common`, `configs`, `analyzers` and `utils` are HTA's own names;
`shapes` gives native results HTA's columns, index, units and rounding.
"""
