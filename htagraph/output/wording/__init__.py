"""What each command says: titles of its tables, headings of their columns and its sentences, one file per command."""
