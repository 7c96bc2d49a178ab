"""Jobs that are open for questions: a page on this machine's own network address, and tools for agents."""
