"""Expected conclusions about jobs, from raw JSON, re-simulation and recorded truths, without htagraph's analyses."""
