"""HTA's analyzers by their own import paths; the results come from `htagraph.hta.shapes`."""
