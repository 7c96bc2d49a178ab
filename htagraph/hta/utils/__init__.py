"""HTA's small helpers."""
