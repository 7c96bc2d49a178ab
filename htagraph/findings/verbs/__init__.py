"""What each verb of the command line says of its tables: one file per verb."""
