"""One HTML file that opens from the disk: findings, an interactive timeline, breakdowns."""
