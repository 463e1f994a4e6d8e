"""Messages and tables of cooperative Dalton as bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError
from evenflow.partitioners import create
from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage
from evenflow.partitioners.exchange import Message
from tests.examples import examples
from tests.unit.partitioners.dalton.sync_rounds import bodies, reduced, rounds, told

few = examples(25)


@few
@given(rounds(), st.data())
def test_messages_and_tables_survive_bytes_and_damage_is_noticed(
    drawn: tuple[list[Message], int], data: st.DataObject
) -> None:
    messages, workers = drawn
    for one in (*bodies(messages), reduced(messages, workers)):
        blob = one.to_bytes()
        again = type(one).from_bytes(blob)
        for name, value in vars(one).items():
            if isinstance(value, np.ndarray):
                assert getattr(again, name).tolist() == value.tolist()
                assert getattr(again, name).dtype == value.dtype
                assert getattr(again, name).shape == value.shape
            else:
                assert getattr(again, name) == value
        assert again.to_bytes() == blob
        broken = bytearray(blob)
        broken[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
        with pytest.raises(IncompatibleStateError, match="this is no"):
            type(one).from_bytes(bytes(broken))


def test_one_kind_of_message_is_not_taken_for_another() -> None:
    table = reduced([told(0)], 3)
    with pytest.raises(IncompatibleStateError, match="this is a GlobalTable, not a SyncMessage"):
        SyncMessage.from_bytes(table.to_bytes())
    with pytest.raises(IncompatibleStateError, match="this is a snapshot, not a GlobalTable"):
        GlobalTable.from_bytes(create("pkg", workers=4).snapshot())
