"""HTA's configuration: which arguments of events become columns, and where HTA looks for settings."""
