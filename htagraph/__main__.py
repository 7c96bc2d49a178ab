"""``python -m htagraph``."""

from htagraph.cli import main

main()
