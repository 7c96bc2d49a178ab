"""Evidence shared by edge rules: runtime calls and their order, waits and records of events, members of collectives."""
