"""Judges how many records of a sample find their row in the lookup file."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.reporting.words import share
from evenflow.settings import Settings
from workbench.assist.findings import Finding
from workbench.assist.sample_check.facts import SampleFacts
from workbench.assist.sample_check.words import counted


def judge_lookup(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """A finding about records without a row. It is a problem if no record has one, whatever becomes of
    them.
    """
    lookup, lookup_facts = settings.query.lookup, facts.lookup
    if lookup is None or lookup_facts is None or not lookup_facts.unmatched:
        return
    # A record that is rejected as unmatched is among the rejected ones.
    lookups = facts.readable + facts.unmatched_and_rejected(settings.query)
    message = f"{counted(lookup_facts.unmatched, lookups)} records have no row in {lookup.file} "
    message += f"({share(lookup_facts.unmatched, lookups)})"
    do = "complete the file, or set query.lookup.missing = 'null'"
    if lookup.missing == "null":
        do = "the columns of the file are null there: complete the file if that is not meant"
    if lookup_facts.unmatched < lookups:
        yield Finding("lookup", "warning", message, do)
        return
    names = f"{', '.join(lookup.key)} of the record with {', '.join(lookup.key_of_file)} of the file"
    yield Finding("lookup", "problem", message, f"look at query.lookup, which compares {names}")
