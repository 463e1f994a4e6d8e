"""Daltons that read the paper otherwise than ours: one file for each reading. The sections route by them."""
