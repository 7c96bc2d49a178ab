"""Which activities of the ranks are one collective, or a send and its receive."""
