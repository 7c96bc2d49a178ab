"""Vocabulary and array algorithms: everything that needs neither a trace nor a graph."""
