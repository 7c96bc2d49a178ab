"""Events → the columns of a file."""
