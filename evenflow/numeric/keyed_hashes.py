"""Hashes of keys that nobody outside of this process can predict: SipHash-2-4 with a secret of the process.

`keys.hash_keys` is public and has to be, because machines and releases must agree on it. So who writes keys
can choose them such that all begin at one slot of a hash table. Then a table of n keys takes n^2 steps. A
table that notices this (it counts its steps) begins anew with these hashes.

Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012).
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from evenflow.numeric.arrays import Int64s, UInt8s, UInt64s, Whole
from evenflow.numeric.kernels import inlined, kernel
from evenflow.numeric.words import mix64, read64, rotate

STEPS = 16
"""Steps a row that a table of honest keys needs at most on average: half full, it needs 1.5 to 2.5."""
FEWEST_STEPS = 4_096
"""Steps that any table may take, so that chance in a small one does not count."""
NO_LIMIT = 2**62
"""More steps than there can be."""

_SECRET = np.array([secrets.randbits(64) for _ in range(3)], np.uint64)
_BYTE = np.uint64(0xFF)


def steps_for(rows: int) -> int:
    """Steps after which a table of so many rows begins anew with keyed hashes."""
    return STEPS * rows + FEWEST_STEPS


@inlined
def _round(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a, c = a + b, c + d
    b, d = rotate(b, 13) ^ a, rotate(d, 16) ^ c
    a = rotate(a, 32)
    c, a = c + b, a + d
    b, d = rotate(b, 17) ^ c, rotate(d, 21) ^ a
    return a, b, rotate(c, 32), d


@kernel
def sip_hash(data: UInt8s, start: Whole, end: Whole, secret: UInt64s) -> np.uint64:
    """SipHash-2-4 of the bytes start..end-1. secret: its key, the first two words."""
    a, b = secret[0] ^ np.uint64(0x736F6D6570736575), secret[1] ^ np.uint64(0x646F72616E646F6D)
    c, d = secret[0] ^ np.uint64(0x6C7967656E657261), secret[1] ^ np.uint64(0x7465646279746573)
    at = start
    while at + 8 <= end:
        word = read64(data, at)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= word
        at += 8
    # The last word has the bytes that are left, and the length above them.
    word = (np.uint64(end - start) & _BYTE) << np.uint64(56)
    for byte in range(end - at):
        word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    d ^= word
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= word
    c ^= _BYTE
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@kernel
def _hash_all(offsets: Int64s, data: UInt8s, panes: Int64s, secret: UInt64s, out: UInt64s) -> None:
    with_panes = panes.shape[0] > 0
    for row in range(out.shape[0]):
        word = sip_hash(data, offsets[row], offsets[row + 1], secret)
        if with_panes:
            word ^= mix64(np.uint64(panes[row]) ^ secret[2])
        out[row] = word


def keyed_hashes(offsets: Int64s, data: UInt8s, panes: Int64s | None = None) -> UInt64s:
    """A hash of each key, and of its pane if there are panes, shape (keys,). Another process has others.

    offsets, data: the bytes of key k are data[offsets[k]] to data[offsets[k + 1] - 1].
    """
    out = np.empty(len(offsets) - 1, np.uint64)
    every_pane = np.empty(0, np.int64) if panes is None else panes
    _hash_all(_read_only(offsets), _read_only(data), _read_only(every_pane), _read_only(_SECRET), out)
    return out


def _read_only(array: Any) -> Any:
    """numba compiles a kernel once for read-only and once for writable arrays."""
    view = array.view()
    view.flags.writeable = False
    return view
