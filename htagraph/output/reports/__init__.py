"""The reports of the commands: the tables, figures and sentences that each gives, and what readers see of them."""
