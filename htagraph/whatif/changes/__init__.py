"""What can be changed in a job: one file and one function of the same name each, from a state to another."""
