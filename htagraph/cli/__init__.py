"""The commands: one file and one function of the same name each, from options to an analysis to a report."""

from htagraph.cli.writing import show_messages

__all__: list[str] = []

show_messages()  # before the verbs are imported, which may have something to say
