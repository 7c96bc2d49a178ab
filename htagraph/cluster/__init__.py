"""Jobs whose ranks are read by workers: of a Dask or Ray cluster, or of local processes."""
