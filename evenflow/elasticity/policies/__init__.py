"""The policies, one in each file. `evenflow.elasticity.registry` gives them their names."""
