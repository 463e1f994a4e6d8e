"""Names say what their things are, and folders are small enough to look through (tests/lexicon.py)."""

import pytest

from tests.lexicon import MOST_GENERIC, MOST_REUSED, SHORT, Room, rooms


@pytest.fixture(scope="module")
def measured() -> dict[str, Room]:
    return rooms()


LARGE_FOLDERS = {
    "cli": "a file for each command",
    "evenflow/queries": "a file for each built-in query",
}
"""Folders that may have more than fifteen files, with the reason."""

PUBLIC = {
    ("evenflow/twostep/reducing/state.py", "came"): "a field of the reducer's state",
    ("topics/query/audit.py", "what"): "a field of the audit log",
}
"""Generic names that stand in a contract or in bytes that are kept."""


def test_a_generic_name_lives_for_a_few_lines_only(measured: dict[str, Room]) -> None:
    lasting = [
        f"{name.path}:{name.line}: {name.name} lives for {name.lines} lines"
        for room in measured.values()
        for name in room.lasting
        if (name.path, name.name) not in PUBLIC
    ]
    assert not lasting, f"say what these are, or end them within {SHORT} lines: {lasting}"


def test_few_names_are_generic(measured: dict[str, Room]) -> None:
    names = [name for room in measured.values() for name in room.bindings]
    share = sum(name.generic for name in names) / len(names)
    assert share <= MOST_GENERIC, (
        f"{share:.1%} of the names are generic, see `python -m tests.lexicon --names`"
    )


def test_a_class_name_stands_for_one_class_of_a_room(measured: dict[str, Room]) -> None:
    repeated = {room.name: room.reused for room in measured.values() if room.reuse > MOST_REUSED}
    assert not repeated


def test_folders_have_at_most_fifteen_files_or_a_reason(measured: dict[str, Room]) -> None:
    large = {folder: count for room in measured.values() for folder, count in room.large_folders.items()}
    assert set(large) == set(LARGE_FOLDERS), large
