"""What the job would do if something were different."""
