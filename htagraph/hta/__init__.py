"""HTA's shapes: what Holistic Trace Analysis 0.6.1 returns, made from native results; one file per topic."""
