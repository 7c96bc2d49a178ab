"""How columns and rules become a graph."""
