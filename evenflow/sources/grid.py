"""The grid of the DEBS 2015 Grand Challenge over New York: square cells,
numbered from "1.1" in the north-west.

The centre of the first 500 m cell lies at 41.474937 N, 74.913585 W. There are two grids, and both begin at
this cell's corner: 300 by 300 cells of 500 m (query 1), and 600 by 600 cells of 250 m (query 2).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SOUTH_500, _EAST_500 = 0.004491556, 0.005986
"""500 m in degrees of latitude and of longitude."""
_NORTH = 41.474937 + _SOUTH_500 / 2
_WEST = -74.913585 - _EAST_500 / 2


def cells(longitude: pa.ChunkedArray, latitude: pa.ChunkedArray, *, across: int) -> pa.Array:
    """The cell of each place as text "east.south", in a grid of `across` by `across` cells.

    Null for a place outside the grid, or without a longitude or latitude.
    """
    scale = across / 300
    east = _number(np.asarray(longitude, np.float64) - _WEST, _EAST_500 / scale)
    south = _number(_NORTH - np.asarray(latitude, np.float64), _SOUTH_500 / scale)
    # Compared as floats, so that a missing place (NaN) is in no cell: each comparison with NaN is false.
    inside = (east >= 1) & (east <= across) & (south >= 1) & (south <= across)
    texts = [
        pa.array(np.where(inside, numbers, 0).astype(np.int64)).cast(pa.string()) for numbers in (east, south)
    ]
    return pc.if_else(
        pa.array(inside), pc.binary_join_element_wise(*texts, "."), pa.scalar(None, pa.string())
    )


def _number(degrees: np.ndarray, of_a_cell: float) -> np.ndarray:
    return np.floor(degrees / of_a_cell) + 1
