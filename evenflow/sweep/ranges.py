"""Lists and ranges of numbers as a person writes them: `8,16,32`, `1:20`, `8:64:8`, `1:5,10`.

A range has both its ends, if the step meets the upper one. Without a step, the step is 1.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from evenflow.errors import ConfigError

MOST = 100_000
"""Most numbers of a list."""
_HOW = "write a list such as 8,16,32, a range such as 1:20, or a range with a step such as 8:64:8"


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """The whole numbers of a text, in its order. ConfigError, which names the option, for anything else."""
    numbers = _numbers(option, text)
    for number in numbers:
        if number != int(number):
            raise ConfigError(f"{option}: {number} is not a whole number", hint=_HOW)
    return tuple(int(number) for number in numbers)


def decimals(option: str, text: str) -> tuple[float, ...]:
    """The numbers of a text, in its order. ConfigError, which names the option, for anything else."""
    return tuple(float(number) for number in _numbers(option, text))


def _numbers(option: str, text: str) -> list[Decimal]:
    numbers: list[Decimal] = []
    for piece in text.split(","):
        numbers += _piece(option, piece.strip())
        if len(numbers) > MOST:
            raise ConfigError(f"{option}: {text!r} has more than {MOST:,} numbers", hint="make it shorter")
    unique = set[Decimal]()
    for number in numbers:
        if number in unique:
            raise ConfigError(f"{option}: {number} is given twice in {text!r}", hint="name it once")
        unique.add(number)
    return numbers


def _piece(option: str, piece: str) -> list[Decimal]:
    """The numbers of one piece: a number, or a range."""
    parts = piece.split(":")
    if not piece or len(parts) > 3:
        raise ConfigError(f"{option}: {piece!r} is neither a number nor a range", hint=_HOW)
    ends = [_number(option, part) for part in parts]
    if len(ends) == 1:
        return ends
    first, last = ends[0], ends[1]
    step = ends[2] if len(ends) == 3 else Decimal(1)
    if step <= 0:
        raise ConfigError(f"{option}: the step of {piece!r} is not more than 0", hint=_HOW)
    if first > last:
        raise ConfigError(f"{option}: the range {piece!r} descends", hint=f"write {last}:{first}")
    if (last - first) / step >= MOST:
        raise ConfigError(f"{option}: {piece!r} has more than {MOST:,} numbers", hint="take a larger step")
    # Exact, because these are decimal numbers: with floats 0.1:0.3:0.1 would lose its upper end.
    return [first + at * step for at in range(int((last - first) / step) + 1)]


def _number(option: str, text: str) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise ConfigError(f"{option}: {text!r} is not a number", hint=_HOW) from None
    if not number.is_finite() or abs(number) > 10**15:
        raise ConfigError(f"{option}: {text!r} is out of range", hint="a number has at most 15 digits")
    return number
