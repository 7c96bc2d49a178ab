"""Results as plotly figures: one module per topic; nothing here computes or shows."""
