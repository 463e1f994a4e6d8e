"""The built-in aggregates, one in each file. `evenflow.aggregates.registry` gives them their names."""
