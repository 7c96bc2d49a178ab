"""Measures of a graph that many questions share: each is computed once and kept with the graph, like its tree."""
