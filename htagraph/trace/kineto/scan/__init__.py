"""The compiled scan: text of events → rows of numbers."""
