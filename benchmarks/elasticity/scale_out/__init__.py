"""Scaling out sooner: closed loops in virtual time, with and without a reserve, a forecast and a bound of
micro-batches. Tables of docs/elasticity.md.

measuring  a variant on a shape, with every seed
page       the tables
"""
