"""Edge rules, one file each, and `RULES`, their order."""
