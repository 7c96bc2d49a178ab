"""Expected conclusions about jobs, from raw JSON, re-simulation and recorded truths; nothing here uses htagraph's analyses."""
