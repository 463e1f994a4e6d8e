"""Finds the word that was probably meant, for messages about an unknown word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a message: `; did you mean 'pkg'?`, or empty if no known word is similar."""
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
