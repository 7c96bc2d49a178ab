"""Everything that writes files for other tools: Perfetto's UI, Graphviz, and copies of traces with something added."""
