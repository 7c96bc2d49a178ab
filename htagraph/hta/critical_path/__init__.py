"""HTA's critical-path graph as a view of ours."""
