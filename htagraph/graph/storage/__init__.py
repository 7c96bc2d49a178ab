"""Graphs in files: `saved` writes and opens one, `parts` says what is in it, `array_file` how it lies on the disk."""
