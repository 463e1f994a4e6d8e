"""The facts as one screen, and as one JSON object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from evenflow.talking.words import by_reason, numbers, share
from workbench.status.facts import Facts, PartitionFacts, WindowFacts
from workbench.status.heard import said_of
from workbench.status.judging import findings, state_of
from workbench.status.words import ago, count, moment

_WIDE = 125
"""From this width of the terminal on, one table is enough."""


def screen(facts: Facts, *, width: int) -> Group:
    """Tables and lines for a terminal. The last lines say what is wrong. width: columns of the terminal."""
    parts: list[Table | Text] = [Text(f"query {facts.query}, input {facts.topic}", style="bold")]
    if facts.partitions:
        counts = {
            name: cell for name, cell in _COUNTS.items() if name != "filtered" or facts.total("filtered")
        }
        together = [_PLACES | counts] if width >= _WIDE else [_PLACES, counts]
        parts += [_table(facts, columns) for columns in together]
    parts += [Text(line) for line in lines(facts)]
    found = findings(facts)
    for one in found:
        wrong = one.level == "wrong"
        parts.append(
            Text(f"! {one.text}" if wrong else f"warning: {one.text}", style="red" if wrong else "yellow")
        )
    if not found:
        parts.append(Text("nothing is wrong", style="green"))
    return Group(*parts)


def lines(facts: Facts) -> Iterator[str]:
    """Everything but the table and what is wrong: one line `subject: words` for each subject."""
    if facts.begun:
        yield f"rejected: {_rejected(facts)}"
        yield from _windows(facts)
        for seen in facts.views:
            yield f"view {seen.name}: {_closed(facts, seen.windows)}"
        yield _plan(facts)
    for member in facts.members:
        owned = numbers(member.partitions) or "no partitions (stands by)"
        yield f"alive: {member.client_id} on {member.host} reads {owned}"
    for part in facts.parts:
        yield f"heard: {part.name}, {ago(facts.now - part.at)} ago: {said_of(part.said)}"
    if facts.ignored:
        yield f"telemetry: {count(facts.ignored, 'record')} of others ignored"
    for stage in facts.stages:
        when = "" if stage.last_at is None else f", the last {ago(facts.now - stage.last_at)} ago"
        yield f"checkpoint: {stage.stage}, {stage.batches:,} micro-batches done{when}"
    for seen in facts.views:
        for stage in seen.stages:
            yield f"checkpoint of view {seen.name}: {stage.stage}, {stage.batches:,} micro-batches done"


def as_json(facts: Facts) -> dict[str, Any]:
    """The facts as plain JSON. Times are in ms."""
    windows, plan, found = facts.windows, facts.plan, findings(facts)
    return {
        "state": state_of(found),
        "findings": [vars(finding) for finding in found],
        "query": facts.query,
        "input": facts.topic,
        "now": facts.now,
        "begun": facts.begun,
        "ended": facts.ended,
        "changed": list(facts.changed),
        "lag": facts.lag,
        "partitions": [_partition(one) for one in facts.partitions],
        "rejected": {"by_reason": dict(facts.rejected.by_reason), "whole": facts.rejected.whole},
        "unfit": facts.unfit,
        "windows": vars(windows),
        "workers": facts.workers,
        "plan": None if plan is None else vars(plan),
        "members": [{**vars(member), "partitions": list(member.partitions)} for member in facts.members],
        "parts": [
            {"name": part.name, "at": part.at, "said": part.said.model_dump(mode="json")}
            for part in facts.parts
        ],
        "telemetry_ignored": facts.ignored,
        "stages": [vars(stage) for stage in facts.stages],
        "views": {
            seen.name: {**vars(seen.windows), "stages": [vars(stage) for stage in seen.stages]}
            for seen in facts.views
        },
        "wrong": [finding.text for finding in found],
    }


def _table(facts: Facts, columns: Columns) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("partition", justify="right", no_wrap=True)
    for header in columns:
        # A narrow terminal breaks a time between day and hour.
        table.add_column(header, justify="right", overflow="fold", no_wrap=header not in _TIMES)
    for one in facts.partitions:
        table.add_row(str(one.partition), *(cell(one) for cell in columns.values()))
    return table


def _counted(name: str) -> Callable[[PartitionFacts], str]:
    """A cell that shows this field of the committed state."""
    return lambda one: "-" if one.state is None else f"{getattr(one.state, name):,}"


def _share(one: PartitionFacts) -> str:
    return share(one.state.rejected, one.state.read) if one.state is not None and one.state.read else "-"


def _standing(one: PartitionFacts) -> str:
    if one.state is None:
        return "not begun"
    return "ended" if one.ended else "idle" if one.state.asleep else ""


Columns = dict[str, Callable[[PartitionFacts], str]]
_TIMES = ("watermark (UTC)", "mark (UTC)")
_PLACES: Columns = {
    "begin": _counted("begin"),
    "committed": _counted("offset"),
    "end": lambda one: f"{one.log_end:,}",
    "lag": lambda one: f"{one.lag:,}",
    _TIMES[0]: lambda one: moment(one.watermark),
    _TIMES[1]: lambda one: moment(one.mark),
}
_COUNTS: Columns = {
    "read": _counted("read"),
    "routed": _counted("routed"),
    "filtered": _counted("filtered"),
    "rejected": _counted("rejected"),
    "share": _share,
    "": _standing,
}


def _partition(one: PartitionFacts) -> dict[str, Any]:
    state = one.state
    counted = {
        name: None if state is None else getattr(state, name)
        for name in ("read", "routed", "filtered", "rejected")
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
        "max_jump": one.max_jump,
        "max_jump_from": one.max_jump_from,
        "out_of_orderness": one.out_of_orderness,
        "out_of_orderness_from": one.out_of_orderness_from,
        **counted,
    }


def _rejected(facts: Facts) -> str:
    total = facts.total("rejected")
    if not total:
        return "none"
    found = facts.rejected
    reasons = by_reason(found.by_reason)
    of = "" if found.whole else f" (of the newest {sum(found.by_reason.values()):,})"
    return f"{total:,} of {facts.total('read'):,}: {reasons or 'the records are gone'}{of}"


def _closed(facts: Facts, windows: WindowFacts) -> str:
    written = "none yet" if windows.looked else "where status cannot look"
    if windows.written is not None:
        since = "" if windows.written_at is None else f", {ago(facts.now - windows.written_at)} ago"
        written = f"up to {moment(windows.written)}{since}"
    waiting = f", at most {count(windows.missing, 'window')} on the way" if windows.missing else ""
    if waiting and windows.sparse:
        waiting += " or without a row"
    return f"{'due' if facts.early else 'closed'} up to {moment(windows.due)}; written {written}{waiting}"


def _windows(facts: Facts) -> Iterator[str]:
    windows = facts.windows
    yield f"windows: {_closed(facts, windows)}"
    if windows.next is not None:
        does = "comes out" if facts.early else "closes"
        yield f"next: the window up to {moment(windows.next)} {does} when every partition is past {moment(windows.needs)}"


def _plan(facts: Facts) -> str:
    plan = facts.plan
    if plan is None:
        return f"plan: none published, {count(facts.workers, 'worker')} by the settings"
    since = "" if plan.effective_from is None else f", from {moment(plan.effective_from)} on"
    together = f"{count(plan.workers, 'worker')}, {count(plan.reducers, 'bucket')} at once"
    return f"plan: epoch {plan.epoch}, {together}{since}"
