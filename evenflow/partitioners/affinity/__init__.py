"""Cardinality as load: CM, AM, cAM and LM (paper 004), which know the keys that each worker holds."""
