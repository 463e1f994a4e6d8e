"""What reasons show of a record's cells, at every length and with every kind of character where the text
is cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from evenflow.settings import Settings, load_settings
from partitioner_service.reading.cells.cells import TEXT, Cells
from partitioner_service.reading.cells.strings import shown
from partitioner_service.reading.parse import Parser

SHOWN = 40
LENGTHS = range(65)
CHARACTERS = ["é".encode(), "€".encode(), "😀".encode()]
BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]


def with_a_character(character: bytes, place: int, length: int) -> bytes:
    """Text of `length` bytes with this at `place`, as far as it fits."""
    return (b"x" * place + character + b"y" * 64)[:length]


TEXTS = sorted(
    {b"x" * length for length in LENGTHS}
    | {with_a_character(c, at, n) for c in CHARACTERS + BROKEN for at in range(36, 41) for n in LENGTHS}
    | {(c * 64)[:length] for c in CHARACTERS + BROKEN for length in LENGTHS}
)


def begins(text: bytes) -> bytes:
    """What is to be shown, said in the simplest way."""
    at, told = 0, b""
    while at < min(len(text), SHOWN):
        length = next((n for n in range(1, 5) if is_character(text[at : at + n])), 0)
        fine = length > 1 or 32 <= text[at] < 127
        told += text[at : at + max(length, 1)] if fine else b"?"
        at += max(length, 1)
    return told + b"..." * (at < len(text))


def is_character(text: bytes) -> bool:
    try:
        return len(text.decode()) == 1
    except UnicodeDecodeError:
        return False


def cells_of(texts: list[bytes], between: bytes) -> tuple[np.ndarray, Cells]:
    """A block of these cells; `between` stands behind each."""
    cells = Cells.of(np.array([TEXT]), len(texts))
    cells.lengths[0] = [len(text) for text in texts]
    cells.begins[0] = np.cumsum([0, *(len(text) + len(between) for text in texts)])[:-1]
    return np.frombuffer(between.join([*texts, b""]), np.uint8), cells


@pytest.mark.parametrize("between", [b"\n", b"\x80\x80\x80\n"])
@pytest.mark.parametrize("times", [1, 100])
def test_no_more_is_written_than_there_is_room_for(times: int, between: bytes) -> None:
    for text in TEXTS:
        data, cells = cells_of([text] * times, between)
        result = shown(data, cells, np.zeros(times, np.int64), np.arange(times))
        result.validate(full=True)
        assert set(result.to_pylist()) == {begins(text)}


@dataclass(frozen=True)
class Reason:
    """A cell of any length that is wrong: `head` and then `fill`, `least` bytes at least; in words around
    it.
    """

    column: str
    why: str
    head: bytes = b""
    fill: bytes = b""
    least: int = 1
    unit: str = "ms"
    quoted: bool = False

    def cells(self) -> list[bytes]:
        """Every one that is wrong."""
        if not self.fill:
            return [text for text in TEXTS if len(text) >= self.least]
        return [(self.head + self.fill * 64)[:length] for length in LENGTHS if length >= self.least]


REASONS = {
    "text for a number": Reason("v", "column 'v' holds text where a number is needed (\"{}\")", quoted=True),
    "not whole": Reason(
        "t", "column 't' holds a number that is not whole where a whole number is needed ({})", b"1.", b"5", 3
    ),
    "too large": Reason("t", "column 't' holds a whole number that 64 bits do not hold ({})", b"", b"9", 20),
    "not finite": Reason("v", "column 'v' is not a finite number ({})", b"1e", b"9", 5),
    "no time": Reason("t", "time column 't' does not hold a time ({})", unit="iso", quoted=True),
    "far time": Reason(
        "t", "time column 't' holds a time that is out of range ({})", b"9999999999999.", b"0", 16, "s"
    ),
}
OF_JSON = REASONS | {
    "a number for text": Reason("k", "column 'k' holds a number where text is needed ({})", b"", b"1")
}


def query(unit: str, **input_: Any) -> Settings:
    """Key k, time t, value v."""
    return load_settings(
        query={"key": "k", "time": "t", "time_unit": unit, "window": "10s", "aggregates": {"s": "sum(v)"}},
        input=input_,
    )


def assert_told(settings: Settings, records: dict[bytes, str]) -> None:
    """Alone, in a block of many alike and in one of all, every record is told the same of."""
    parser = Parser(settings)
    assert list(parser.parse(list(records)).bad.values()) == list(records.values())
    for record, why in records.items():
        assert list(parser.parse([record]).bad.values()) == [why]
        assert set(parser.parse([record] * 30).bad.values()) == {why}


@pytest.mark.family
@pytest.mark.parametrize("name", OF_JSON)
def test_a_reason_shows_a_json_cell_of_any_length(name: str) -> None:
    reason = OF_JSON[name]
    time = b'"1970-01-02"' if reason.unit == "iso" else b"1"
    records = {}
    for cell in reason.cells():
        if reason.unit == "iso" and not is_text(cell):
            continue
        fields = {"k": b'"a"', "t": time, "v": b"1", reason.column: b'"%s"' % cell if reason.quoted else cell}
        record = b"{%s}" % b",".join(b'"%s":%s' % (field.encode(), value) for field, value in fields.items())
        records[record] = reason.why.replace("{}", begins(cell).decode())
    assert_told(query(reason.unit), records)


@pytest.mark.family
@pytest.mark.parametrize("quote", [False, True])
@pytest.mark.parametrize("name", REASONS)
def test_a_reason_shows_a_csv_field_of_any_length(name: str, quote: bool) -> None:
    reason = REASONS[name]
    time = b"1970-01-02" if reason.unit == "iso" else b"1"
    records = {}
    for cell in reason.cells():
        if reason.unit == "iso" and not is_text(cell):
            continue
        fields = {"k": b"a", "t": time, "v": b"1", reason.column: b'"%s"' % cell if quote else cell}
        records[b",".join(fields.values())] = reason.why.replace("{}", begins(cell).decode())
    assert_told(query(reason.unit, format="csv", columns=["k", "t", "v"]), records)


def is_text(cell: bytes) -> bool:
    """Whether it is UTF-8: what is none has a reason that shows nothing."""
    return cell.decode(errors="replace").encode() == cell
