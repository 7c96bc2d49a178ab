"""Words, tables, figures and files: the only floor that words, draws or writes."""
