"""How long a test waits for what surely comes, on however busy a machine, until it fails because that hangs."""

PATIENCE_S = 300
"""Chosen: the slowest start of a process seen here, with all else it compiles, took a minute. Doubled, nothing changes
but how late a test that hangs fails."""
