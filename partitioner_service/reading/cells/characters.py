"""Names for the bytes of ASCII that mean something in a record."""

from __future__ import annotations

from evenflow.numeric.arrays import UInt8s
from evenflow.numeric.kernels import inlined

BACKSPACE, TAB, LINE_FEED, FORM_FEED, RETURN, BLANK, DELETE = 8, 9, 10, 12, 13, 32, 127
QUOTE, PLUS, COMMA, MINUS, POINT, SLASH, COLON, QUESTION_MARK, BACKSLASH = b'"+,-./:?\\'
ZERO, NINE = b"09"
OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT = b"[]{}"
CLOSING = 2
"""An opening bracket plus this number is the bracket that closes it, in ASCII both for [] and for {}."""
SMALL = 32
"""The bit that makes a capital letter of ASCII a small one."""
SMALL_A, SMALL_B, SMALL_E, SMALL_F, SMALL_N, SMALL_R, SMALL_T, SMALL_U, SMALL_X = b"abefnrtux"
CAPITAL_E, CAPITAL_I, CAPITAL_N, CAPITAL_T, CAPITAL_Z = b"EINTZ"


@inlined
def is_digit(byte: int) -> bool:
    """Whether this byte is a digit from 0 to 9."""
    return ZERO <= byte <= NINE


@inlined
def is_space(byte: int) -> bool:
    """Whether this byte is white space in JSON."""
    return byte in (BLANK, LINE_FEED, RETURN, TAB)


@inlined
def is_blank(byte: int) -> bool:
    """Whether this byte is white space within a line: a blank or a tab."""
    return byte in (BLANK, TAB)


@inlined
def spells(data: UInt8s, at: int, word: tuple[int, ...]) -> bool:
    """Whether this word stands here.

    It stops at the first byte that differs, so it never looks past a record's end.
    """
    for place in range(len(word)):  # noqa: SIM110 (kernels have no generators)
        if data[at + place] != word[place]:
            return False
    return True
