"""Scenarios of the pure cores of combiner and reducer, without broker and Spark."""
