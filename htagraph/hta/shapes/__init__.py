"""Native results in HTA's columns, index, units and rounding."""
