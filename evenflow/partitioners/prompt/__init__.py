"""Prompt: whole micro-batches are cut into blocks (paper 001), and the time-based cut to compare with."""
