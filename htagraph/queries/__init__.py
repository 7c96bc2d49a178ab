"""Questions to the graph that several analyses share."""
