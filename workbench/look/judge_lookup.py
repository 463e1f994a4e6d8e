"""Judges how many records of a sample find their row in the lookup file."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.settings import Settings
from evenflow.talking.words import share
from workbench.findings import Finding
from workbench.look.facts import Facts
from workbench.look.words import counted


def judge_lookup(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """A finding about records without a row. It is a problem if no record has one, whatever becomes of them."""
    lookup, found = settings.query.lookup, facts.lookup
    if lookup is None or found is None or not found.unmatched:
        return
    # A record that is rejected as unmatched is among the rejected ones.
    asked = facts.readable + facts.unmatched_and_rejected(settings.query)
    what = f"{counted(found.unmatched, asked)} records have no row in {lookup.file} ({share(found.unmatched, asked)})"
    do = "complete the file, or set query.lookup.missing = 'null'"
    if lookup.missing == "null":
        do = "the columns of the file are null there: complete the file if that is not meant"
    if found.unmatched < asked:
        yield Finding("lookup", "warning", what, do)
        return
    names = f"{', '.join(lookup.key)} of the record with {', '.join(lookup.key_of_file)} of the file"
    yield Finding("lookup", "problem", what, f"look at query.lookup, which compares {names}")
