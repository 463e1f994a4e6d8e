"""Prompt: whole micro-batches are cut into data blocks (paper 001), and the time-based cut to compare
with.
"""
