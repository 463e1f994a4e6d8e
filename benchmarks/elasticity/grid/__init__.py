"""Every policy under a grid of loads, in the simulator: the tables of docs/elasticity.md.

loads      what comes, and to what kind of operator
measuring  a policy under a load, with every seed
page       the tables
"""
