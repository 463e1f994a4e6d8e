"""PartLy: a learned policy plans each micro-batch (paper 001, chapter 4).
Training it is in `evenflow.training`.
"""
