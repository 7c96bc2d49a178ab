"""Figures of tables in HTA's shape, for `htagraph/hta` alone; those of native results lie beside this folder."""
