"""What all parts of the section on 000 share."""

from __future__ import annotations

NAME = "windowed"
WORKERS = 64
SLIDES = 60
"""Slides of a window."""
RULES = ("hashing", "cam", "shuffle", "pkg", "cm", "dagreedy", "dalton", "evenflow")
"""The paper's tuple-at-a-time rules, and ours."""
WHOLE_OR_TWO = ("hashing", "cam", "pkg", "cm")
"""Rules that keep a key whole, and rules with two choices."""
SPLITTING = ("shuffle", "pkg", "cm")
"""Rules that split any key."""
CAM = ("cam", "cam:d=4", "cam:d=8")
"""cAM with 2, 4 and 8 candidates. Sections on micro-batches take the best, as 001 does."""
