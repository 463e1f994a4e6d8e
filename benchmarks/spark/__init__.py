"""Scenarios of Spark's triggers and tasks under micro-batch partitioners."""
