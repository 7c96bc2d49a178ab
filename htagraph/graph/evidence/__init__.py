"""What the recording says about calls, waits, records and members of collectives: what edge rules share."""
