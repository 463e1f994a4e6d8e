"""Words of 64 bits: read from bytes, rotated, and mixed."""

from __future__ import annotations

import numpy as np

from evenflow.numeric.arrays import UInt8s, Whole
from evenflow.numeric.kernels import inlined, kernel

# The two multipliers of splitmix64's finaliser.
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S64 = np.uint64(64)


@kernel
def read64(data: UInt8s, at: Whole) -> np.uint64:
    """The word of the eight bytes from `at` on."""
    # Byte by byte, because a key may begin at any address. The order is little-endian on every machine.
    word = np.uint64(0)
    for byte in range(8):
        word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    return word


@inlined
def rotate(x: np.uint64, bits: int) -> np.uint64:
    """The bits moved up by so many places. Those that leave at the top come in at the bottom."""
    return (x << np.uint64(bits)) | (x >> (_S64 - np.uint64(bits)))


@inlined
def mix64(x: np.uint64) -> np.uint64:
    """The splitmix64 finaliser: a bijection of 64-bit words. Each output bit depends on all input bits."""
    x = (x ^ (x >> np.uint64(30))) * _M1
    x = (x ^ (x >> np.uint64(27))) * _M2
    return x ^ (x >> np.uint64(31))
