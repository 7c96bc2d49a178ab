"""A small DAG whose longest paths between terminals are those of a large one; see `contraction.contract`."""
