"""Which nodes there are: every node has a place of its own, and only what changed is written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.twostep.reducing.directory import CHUNK, Directory
from tests.unit.twostep.pipe import Dict

NODES = st.tuples(st.integers(0, 40), st.integers(-(2**20), 2**20))


@given(st.dictionaries(NODES, st.integers(0, 2**40), max_size=30))
def test_every_node_keeps_its_number_of_appends_through_a_save(counts: dict[tuple[int, int], int]) -> None:
    state = Dict()
    directory = Directory(state)
    for node, appends in counts.items():
        directory.set(node, appends)
    directory.save()
    again = Directory(state)
    assert {node: again.appends(node) for node in counts} == counts
    panes = sorted(number for (level, number), appends in counts.items() if level == 0 and appends)
    assert list(again.panes(-(2**30), 2**30)) == panes


def test_all_nodes_of_a_chunk_have_places_of_their_own() -> None:
    state = Dict()
    directory = Directory(state)
    levels = CHUNK.bit_length()
    nodes = [(level, number) for level in range(levels) for number in range(CHUNK >> level)]
    nodes += [(level, 0) for level in range(levels, 40)]
    for at, node in enumerate(nodes, start=1):
        directory.set(node, at)
    directory.save()
    again = Directory(state)
    assert [again.appends(node) for node in nodes] == list(range(1, len(nodes) + 1))
    assert list(state) == ["nodes/0", "chunks"]


def test_a_chunk_that_was_only_looked_at_is_not_written_and_an_empty_one_is_removed() -> None:
    state = Dict()
    directory = Directory(state)
    for pane in (3, 5 * CHUNK):
        directory.set((0, pane), 1)
    directory.save()
    before, puts = dict(state), state.puts
    looking = Directory(state)
    assert looking.appends((0, 3)) == 1
    looking.save()
    assert (dict(state), state.puts) == (before, puts)
    emptied = Directory(state)
    emptied.set((0, 3), 0)
    emptied.save()
    assert "nodes/0" not in state
    assert list(Directory(state).panes(0, 10 * CHUNK)) == [5 * CHUNK]
