"""Arrays as bytes of a bucket's state."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import DataLossError
from evenflow.twostep.reducing.state_blobs import packed, unpacked


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_values_come_back_as_they_were_written(values: list[int]) -> None:
    assert unpacked(packed(np.array(values, np.int64))).tolist() == values


def test_a_length_below_zero_is_damage_and_no_error_of_arrow() -> None:
    data = struct.pack("<q", -8) + packed(np.arange(3))[8:]
    with pytest.raises(DataLossError, match="the reducer's state is damaged: it lists -8 bytes"):
        unpacked(data)
