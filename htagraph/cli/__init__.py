"""The commands: one file and one function of the same name each, from options to an analysis to a report."""
