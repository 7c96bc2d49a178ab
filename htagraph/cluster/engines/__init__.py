"""What calls a function on workers: one file per kind of workers, and `choose`, which tells them apart."""
