"""Snapshots that are damaged, foreign, newer or of another shape are refused: kernels do not check bounds."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError
from evenflow.partitioners import create, restore
from evenflow.partitioners.snapshots import pack, unpack
from tests.examples import examples
from tests.unit.partitioners.cases import each, run
from tests.unit.partitioners.streams import zipf


@each
@given(data=st.data())
@examples(20)
def test_a_snapshot_with_any_damaged_byte_is_refused(name: str, options: dict, data: st.DataObject) -> None:
    p = create(name, workers=4, **options)
    run(p, zipf(300))
    blob = bytearray(p.snapshot())
    blob[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(IncompatibleStateError, match="damaged"):
        restore(bytes(blob))


@pytest.mark.parametrize("cut", [0, 1, 100, -20])
def test_a_truncated_or_empty_snapshot_is_refused(cut: int) -> None:
    blob = create("pkg", workers=4).snapshot()
    with pytest.raises(IncompatibleStateError, match="snapshot"):
        restore(blob[:cut])


def test_foreign_and_newer_snapshots_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"a": [1]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(IncompatibleStateError, match="no partitioner snapshot"):
        restore(sink.getvalue().to_pybytes())
    with pytest.raises(IncompatibleStateError, match="no partitioner snapshot"):
        restore(b"something else entirely")
    monkeypatch.setattr("evenflow.partitioners.base.VERSION", 99)
    newer = create("pkg", workers=4).snapshot()
    monkeypatch.undo()
    with pytest.raises(IncompatibleStateError, match="format 99; this evenflow reads format 1"):
        restore(newer)


@pytest.mark.parametrize(
    ("metadata", "columns"),
    [
        (None, {"a": [1]}),
        ({"evenflow-partitioner": "[]"}, {"a": [1]}),
        ({"evenflow-partitioner": "{}"}, {"a": [1]}),
        ({"evenflow-partitioner": "no JSON"}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1}'}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": 3}'}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"b": [1]}}'}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": [1]}}'}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": [1]}}'}, {"a": []}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": [2]}}'}, {"a": [[1]]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": "x"}}'}, {"a": [[1]]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": [1e400]}}'}, {"a": [[1]]}),
        ({"evenflow-partitioner": f'{{"version": 1, "shapes": {{"a": [{2**70}]}}}}'}, {"a": [[1]]}),
        ({"evenflow-partitioner": '{"version": ' + "[" * 200_000}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": [1]}}'}, None),
    ],
)
def test_a_stream_of_something_else_is_refused_though_its_digest_is_right(
    metadata: dict | None, columns: dict | None
) -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(columns or {"a": [1]}).replace_schema_metadata(metadata)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        if columns is not None:
            writer.write_batch(batch)
    stream = sink.getvalue().to_pybytes()
    for foreign in (stream, b"", b"something else"):
        with pytest.raises(IncompatibleStateError, match="no partitioner snapshot"):
            restore(foreign + hashlib.sha256(foreign).digest())


@pytest.mark.parametrize("header", [{}, {"name": []}, {"options": 3}, {"workers": "4"}, {"tuples": None}])
def test_a_snapshot_with_another_header_is_refused(header: dict) -> None:
    known, state = unpack(create("pkg", workers=4).snapshot())
    del known["shapes"], known["seed"]
    with pytest.raises(IncompatibleStateError, match="does not fit"):
        restore(pack({**known, **header, **({"seed": 7} if header else {})}, state))


def test_a_header_that_claims_more_workers_than_it_has_loads_makes_nothing() -> None:
    header, state = unpack(create("d-choices", workers=4, window="sliding", window_ms=1_000).snapshot())
    del header["shapes"]
    with pytest.raises(IncompatibleStateError, match="loads of 1048576 workers"):
        restore(pack({**header, "workers": 1 << 20}, state))


@pytest.mark.parametrize(
    "other", [{"name": "pkg"}, {"seed": 8}, {"sources": 2}, {"options": {"eps": 0.5}}, {"max_disorder_ms": 5}]
)
def test_a_snapshot_of_what_was_made_otherwise_is_refused_where_one_of_the_same_make_is_wanted(
    other: dict,
) -> None:
    fresh = create("d-choices", workers=4)
    assert restore(create("d-choices", workers=7).snapshot(), like=fresh).workers == 7
    header, state = unpack(fresh.snapshot())
    del header["shapes"]
    with pytest.raises(IncompatibleStateError, match=f"made with other values of {next(iter(other))}"):
        restore(pack({**header, **other}, state), like=fresh)


@pytest.mark.family
@each
def test_a_snapshot_whose_arrays_are_not_what_is_expected_is_refused(name: str, options: dict) -> None:
    """Kernels do not check bounds, so nothing else may reach them."""
    p = create(name, workers=4, **options)
    run(p, zipf(1500))
    header, state = unpack(p.snapshot())
    del header["shapes"]
    assert restore(pack(header, state)).snapshot() == p.snapshot()

    def refused(changed: dict) -> None:
        with pytest.raises(IncompatibleStateError, match=f"does not fit the {name} of this evenflow: "):
            restore(pack(header, changed))

    refused({**state, "surplus": np.zeros(3)})
    for array, values in state.items():
        refused({other: state[other] for other in state if other != array})
        for kind in (np.float32, np.int16):
            refused({**state, array: values.astype(kind)})
        refused({**state, array: values[None]})
        words = p.variable_state.get(array, ("",) * values.ndim)
        alone = [w for a in state for w in p.variable_state.get(a, ())]
        for axis, word in enumerate(words):
            if not word or alone.count(word) > 1:
                room = [(0, int(axis == other)) for other in range(values.ndim)]
                refused({**state, array: np.pad(values, room)})


@pytest.mark.parametrize("compared", [True, False])
def test_no_default_stands_in_for_an_option_that_a_snapshot_lacks(compared: bool) -> None:
    p = create("dalton", workers=4)
    header, state = unpack(p.snapshot())
    del header["options"]["sketch_from"]
    with pytest.raises(IncompatibleStateError, match="other values of options"):
        restore(pack(header, state), like=p if compared else None)
