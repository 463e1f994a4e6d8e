"""Partitioners without state of keys: hashing and shuffle, between which all the others lie."""
