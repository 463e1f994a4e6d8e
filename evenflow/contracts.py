"""A law of a contract in words, with the function that tries it,
and what is said when a thing of one's own breaks it.

Packages write the laws of their contract with this (`partitioners/checking.py`). `evenflow.testing` offers
them to users.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from evenflow.errors import EvenflowError

Subject = TypeVar("Subject")


class BrokenLawError(EvenflowError, AssertionError):
    """A thing of one's own breaks a law of its contract.

    law: in words. example: on which the law was tried. expected, got: what the law asks for, and what came
    instead.
    """

    def __init__(self, who: str, law: str, *, example: str, expected: str, got: str) -> None:
        super().__init__(
            f"{who} breaks a law: {law}\n  example:  {example}\n  expected: {expected}\n  got:      {got}"
        )
        self.law = law
        self.example = example
        self.expected = expected
        self.got = got


class CounterExample(Exception):
    """An example that breaks a law."""

    def __init__(self, example: str, *, expected: str, got: object) -> None:
        super().__init__(example)
        self.example = example
        self.expected = expected
        self.got = got


def demand(holds: object, example: str, *, expected: str, got: object) -> None:
    """Raise CounterExample unless it holds."""
    if not holds:
        raise CounterExample(example, expected=expected, got=got)


@dataclass(frozen=True)
class Law(Generic[Subject]):
    """One promise of a contract."""

    words: str
    """The promise, as a sentence."""
    check: Callable[[Subject], None]
    """Raises CounterExample for a subject that breaks the promise."""

    def hold(self, subject: Subject, *, who: str) -> None:
        """BrokenLawError if the subject breaks this law, or fails with an error where the law is tried."""
        try:
            self.check(subject)
        except CounterExample as error:
            raise BrokenLawError(
                who, self.words, example=error.example, expected=error.expected, got=str(error.got)
            ) from None
        except EvenflowError as error:
            raise BrokenLawError(
                who, self.words, example="see the error above", expected="no error", got=error.message
            ) from error
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            got = f"{type(error).__name__}: {error} ({frame.filename}, line {frame.lineno})"
            raise BrokenLawError(
                who, self.words, example="see the error above", expected="no error", got=got
            ) from error
