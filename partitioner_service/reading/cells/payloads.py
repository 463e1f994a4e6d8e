"""Byte strings one after the other in one buffer: the values or the keys of records,
from the socket to the scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import overload

import numpy as np
import pyarrow as pa

from evenflow.numeric.arrays import Bools, Int64s, UInt8s


class Payloads(Sequence[bytes | None]):
    """n byte strings, each with a line feed behind it. A slice is a view: it copies no byte.

    data: read-only, shape (bytes,). begins: string i is data[begins[i] : begins[i + 1] - 1], shape (n + 1,).
    missing: which strings are None. They are empty in `data`. None means that none is missing, else shape
    (n,).
    """

    __slots__ = ("begins", "data", "missing")

    def __init__(self, data: UInt8s, begins: Int64s, missing: Bools | None = None) -> None:
        # numba would compile every kernel again for an array that can be written.
        data.setflags(write=False)
        self.data = data
        self.begins = begins
        self.missing = missing if missing is not None and missing.any() else None

    @classmethod
    def of(cls, strings: Sequence[bytes | None]) -> Payloads:
        """These strings in a buffer of their own. What is such a buffer already comes back as it is."""
        if isinstance(strings, Payloads):
            return strings
        missing = None
        if None in strings:
            missing = np.fromiter((string is None for string in strings), np.bool_, len(strings))
            strings = [string or b"" for string in strings]
        # From here on no string is None, which mypy does not see.
        begins = np.zeros(len(strings) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)) + 1, out=begins[1:])  # type: ignore[arg-type]
        return cls(np.frombuffer(b"\n".join([*strings, b""]), np.uint8), begins, missing)  # type: ignore[list-item]

    @property
    def sizes(self) -> Int64s:
        """Bytes of each string, 0 where it is missing. Shape (n,)."""
        return np.diff(self.begins) - 1

    def compact(self) -> Payloads:
        """The same strings with `begins` from 0 on, and without the bytes of others around them.
        No byte is copied.
        """
        first, end = int(self.begins[0]), int(self.begins[-1])
        if not first and end == len(self.data):
            return self
        return Payloads(self.data[first:end], self.begins - first, self.missing)

    def column(self) -> pa.BinaryArray:
        """The strings as a column of Arrow, null where they are missing. All together must be below 2 GiB."""
        compact = self.compact()
        between = np.ones(len(compact.data), np.bool_)
        between[compact.begins[1:] - 1] = False  # the line feeds behind the strings
        offsets = (compact.begins - np.arange(len(compact.begins))).astype(np.int32)
        valid = None if compact.missing is None else pa.array(~compact.missing).buffers()[1]
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(compact.data[between])]
        return pa.BinaryArray.from_buffers(pa.binary(), len(compact), buffers)

    def __len__(self) -> int:
        return len(self.begins) - 1

    @overload
    def __getitem__(self, at: int) -> bytes | None: ...
    @overload
    def __getitem__(self, at: slice) -> Payloads: ...
    def __getitem__(self, at: int | slice) -> bytes | Payloads | None:
        if isinstance(at, slice):
            low, high, step = at.indices(len(self))
            if step != 1:
                raise ValueError("payloads are sliced without a step")
            high = max(low, high)
            missing = None if self.missing is None else self.missing[low:high]
            return Payloads(self.data, self.begins[low : high + 1], missing)
        row = range(len(self))[at]
        if self.missing is not None and self.missing[row]:
            return None
        return self.data[self.begins[row] : self.begins[row + 1] - 1].tobytes()


def together(parts: Sequence[Sequence[bytes | None]]) -> Sequence[bytes | None]:
    """The strings of all parts, one part after the other.
    Slices of one buffer that follow each other are not copied.
    """
    if len(parts) == 1:
        return parts[0]
    payloads = [part for part in parts if isinstance(part, Payloads)]
    if len(payloads) < len(parts):
        return list(chain.from_iterable(parts))
    missing = None
    if any(part.missing is not None for part in payloads):
        missing = np.concatenate(
            [np.zeros(len(p), np.bool_) if p.missing is None else p.missing for p in payloads]
        )
    if all(
        former.data is later.data and former.begins[-1] == later.begins[0]
        for former, later in pairwise(payloads)
    ):
        begins = np.concatenate([payloads[0].begins, *(part.begins[1:] for part in payloads[1:])])
        return Payloads(payloads[0].data, begins, missing)
    payloads = [part.compact() for part in payloads]
    starts = np.cumsum([0, *(len(part.data) for part in payloads)])
    begins = np.concatenate(
        [*(p.begins[:-1] + at for p, at in zip(payloads, starts, strict=False)), starts[-1:]]
    )
    return Payloads(np.concatenate([part.data for part in payloads]), begins, missing)
