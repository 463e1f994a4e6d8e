"""Partitioners that remember no key: hashing and shuffle.
They are the two extremes between which all others lie.
"""
