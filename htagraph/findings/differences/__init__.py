"""The findings on two jobs: each file declares a difference and its words."""
