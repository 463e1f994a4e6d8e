"""What scenarios share: CPU time, spreads and slopes, a seeded stream, a pipeline to run, lines about each
step.

May live here: ways to measure. May not: a scenario. Called by the scenarios.
"""
