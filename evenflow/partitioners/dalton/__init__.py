"""Dalton (paper 000): a contextual bandit splits hot keys, tuple by tuple,
in micro-batches or with other instances.
"""
