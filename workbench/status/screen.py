"""The facts as one screen, and as one JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from workbench.alive import Part
from workbench.status.facts import Facts, PartitionFacts
from workbench.status.judging import wrong
from workbench.status.words import ago, count, moment

_COLUMNS = (
    "partition",
    "begin",
    "committed",
    "end",
    "lag",
    "watermark (UTC)",
    "mark",
    "read",
    "routed",
    "rejected",
    "share",
    "",
)


def screen(facts: Facts) -> Group:
    """Tables and lines for a terminal; the last lines say what is wrong."""
    parts: list[Table | Text] = [Text(f"query {facts.query}, input {facts.topic}", style="bold")]
    if facts.partitions:
        parts.append(_partitions(facts))
    parts += [Text(line) for line in lines(facts)]
    concerns = wrong(facts)
    parts += [Text(f"! {one}", style="red") for one in concerns]
    if not concerns:
        parts.append(Text("nothing is wrong", style="green"))
    return Group(*parts)


def lines(facts: Facts) -> Iterator[str]:
    """All but the table and what is wrong: a line a subject, `subject: words`."""
    if facts.begun:
        yield f"rejected: {_rejected(facts)}"
        yield from _windows(facts)
    if facts.plan is not None:
        since = (
            "at once" if facts.plan.effective_from is None else f"from {moment(facts.plan.effective_from)} on"
        )
        yield f"plan: epoch {facts.plan.epoch}, {count(facts.plan.workers, 'worker')}, {since}"
    for member in facts.members:
        owned = ", ".join(map(str, member.partitions)) or "no partitions (stands by)"
        yield f"alive: {member.client_id} on {member.host} reads {owned}"
    for part in facts.parts:
        yield f"heard: {part.name}, {ago(facts.now - part.at)} ago{_said(part)}"
    for stage in facts.stages:
        when = "" if stage.last_at is None else f", the last {ago(facts.now - stage.last_at)} ago"
        yield f"checkpoint: {stage.stage} has done {count(stage.batches, 'micro-batch').replace('hs', 'hes')}{when}"


def as_json(facts: Facts) -> dict[str, Any]:
    """JSON-able fields; times are ms."""
    windows, plan = facts.windows, facts.plan
    return {
        "query": facts.query,
        "input": facts.topic,
        "now": facts.now,
        "begun": facts.begun,
        "ended": facts.ended,
        "changed": list(facts.changed),
        "lag": facts.lag,
        "partitions": [_partition(one) for one in facts.partitions],
        "rejected": {"by_reason": dict(facts.rejected.by_reason), "whole": facts.rejected.whole},
        "windows": vars(windows),
        "plan": None if plan is None else vars(plan),
        "members": [{**vars(member), "partitions": list(member.partitions)} for member in facts.members],
        "parts": [{"name": part.name, "at": part.at, "said": part.said} for part in facts.parts],
        "stages": [vars(stage) for stage in facts.stages],
        "wrong": wrong(facts),
    }


def _partitions(facts: Facts) -> Table:
    table = Table(*_COLUMNS, box=None, pad_edge=False, header_style="dim")
    for column in table.columns[:-1]:
        column.justify = "right"
        column.no_wrap = True
    for one in facts.partitions:
        table.add_row(*_cells(one))
    return table


def _cells(one: PartitionFacts) -> list[str]:
    state = one.state
    if state is None:
        return [str(one.partition), "-", "-", f"{one.log_end:,}", f"{one.lag:,}", *["-"] * 6, "not begun"]
    counts = [f"{number:,}" for number in (state.read, state.routed, state.rejected)]
    return [
        str(one.partition),
        *(f"{number:,}" for number in (state.begin, state.offset, one.log_end, one.lag)),
        moment(one.watermark),
        moment(one.mark),
        *counts,
        f"{state.rejected / state.read:.1%}" if state.read else "-",
        _standing(one),
    ]


def _standing(one: PartitionFacts) -> str:
    if one.ended:
        return "ended"
    return "idle" if one.state is not None and one.state.asleep else ""


def _partition(one: PartitionFacts) -> dict[str, Any]:
    state = one.state
    counted = {
        name: None if state is None else getattr(state, name) for name in ("read", "routed", "rejected")
    }
    return {
        "partition": one.partition,
        "begin": None if state is None else state.begin,
        "committed": None if state is None else state.offset,
        "log_begin": one.log_begin,
        "log_end": one.log_end,
        "lag": one.lag,
        "watermark": one.watermark,
        "mark": one.mark,
        "idle": state is not None and state.asleep,
        "ended": one.ended,
        **counted,
    }


def _rejected(facts: Facts) -> str:
    total = facts.total("rejected")
    if not total:
        return "none"
    found = facts.rejected
    reasons = ", ".join(f"{name} {number:,}" for name, number in found.by_reason.items())
    of = "" if found.whole else f" (of the newest {sum(found.by_reason.values()):,})"
    return f"{total:,} of {facts.total('read'):,}: {reasons or 'the records are gone'}{of}"


def _windows(facts: Facts) -> Iterator[str]:
    windows = facts.windows
    written = "none yet"
    if windows.written is not None and windows.written_at is not None:
        written = f"up to {moment(windows.written)}, {ago(facts.now - windows.written_at)} ago"
    waiting = f", at most {count(windows.missing, 'window')} on the way" if windows.missing else ""
    yield f"windows: closed up to {moment(windows.due)}; written {written}{waiting}"
    if windows.next is not None:
        yield f"next: the window up to {moment(windows.next)} closes when every partition is past {moment(windows.needs)}"


def _said(part: Part) -> str:
    said = part.said
    if part.is_spark:
        load = said.get("load")
        return f": micro-batch {said.get('batch')}, {said.get('rows')} rows" + (
            f", W {load:.2g}" if isinstance(load, float) else ""
        )
    return f": {said.get('state')}, {said.get('tuples_per_second')} tuples/s"
