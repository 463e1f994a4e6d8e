"""Groupings of other papers to compare with: CG, DKG, DAGreedy and PStream."""
