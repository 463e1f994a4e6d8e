"""Figures 7 and 12 of 000: throughput by number of places (`throughput`), and what keeps Dalton from doubling
where it does not (`scaling`).
"""
