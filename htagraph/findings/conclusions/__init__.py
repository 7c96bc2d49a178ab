"""What a job's numbers mean: conclusions as claims, and as sentences and findings."""
