"""What the strict readers share: a record that holds no tuple, and a number as it was written."""

from __future__ import annotations


class Unreadable(Exception):
    """The record holds no tuple of this query. The text says why."""


class WithheldSchema(Unreadable):
    """The registry hands out no schema for the record, so nothing can be said of it."""


class Number(str):
    """A number of a record as it was written."""

    __slots__ = ()
