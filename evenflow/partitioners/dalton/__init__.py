"""Dalton: a contextual bandit splits hot keys, alone, in batches or with others (paper 000)."""
