"""``python -m htagraph``."""

from htagraph.cli.main import main

main()
