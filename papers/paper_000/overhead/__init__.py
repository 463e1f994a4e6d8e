"""Figures 10 and 11 of 000 (section 5.3): what Dalton's partitioner costs, and what its optimisations bring.

statistics     figures 10a and 10b: what counting keys takes
heavy_hitters  figure 10c: how many keys may be split
optimisations  figure 11: what it brings to track hot keys, and to forward keys
kept_times     the times of counting keys and of decisions that these cite
"""
