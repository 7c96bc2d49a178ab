"""Digests of single ranks, and the skeleton of a job of thousands of ranks that is joined from them."""
