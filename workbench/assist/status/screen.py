"""The facts as one screen, and as one JSON object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from evenflow.reporting.words import by_reason, numbers, share
from workbench.assist.status.facts import Facts, PartitionFacts, WindowFacts
from workbench.assist.status.judging import findings, state_of
from workbench.assist.status.reports import report_line
from workbench.assist.status.words import ago, count, moment

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
    troubles = findings(facts)
    for trouble in troubles:
        wrong = trouble.level == "wrong"
        parts.append(
            Text(
                f"! {trouble.text}" if wrong else f"warning: {trouble.text}",
                style="red" if wrong else "yellow",
            )
        )
    if not troubles:
        parts.append(Text("nothing is wrong", style="green"))
    return Group(*parts)


def lines(facts: Facts) -> Iterator[str]:
    """Everything but the table and what is wrong: one line `subject: words` for each subject."""
    if facts.begun:
        yield f"rejected: {_rejected(facts)}"
        yield from _windows(facts)
        for view in facts.views:
            yield f"view {view.name}: {_closed(facts, view.windows)}"
        yield _plan(facts)
    for member in facts.members:
        owned = numbers(member.partitions) or "no partitions (stands by)"
        yield f"alive: {member.client_id} on {member.host} reads {owned}"
    for part in facts.parts:
        yield f"heard: {part.name}, {ago(facts.now - part.at)} ago: {report_line(part.telemetry)}"
    if facts.ignored:
        yield f"telemetry: {count(facts.ignored, 'record')} of others ignored"
    for stage in facts.stages:
        when = "" if stage.last_at is None else f", the last {ago(facts.now - stage.last_at)} ago"
        yield f"checkpoint: {stage.stage}, {stage.batches:,} micro-batches done{when}"
    for view in facts.views:
        for stage in view.stages:
            yield f"checkpoint of view {view.name}: {stage.stage}, {stage.batches:,} micro-batches done"


def as_json(facts: Facts) -> dict[str, Any]:
    """The facts as plain JSON. Times are in ms."""
    windows, plan, troubles = facts.windows, facts.plan, findings(facts)
    return {
        "state": state_of(troubles),
        "findings": [vars(finding) for finding in troubles],
        "query": facts.query,
        "input": facts.topic,
        "now": facts.now,
        "begun": facts.begun,
        "ended": facts.ended,
        "changed": list(facts.changed),
        "lag": facts.lag,
        "partitions": [_partition(partition) for partition in facts.partitions],
        "rejected": {"by_reason": dict(facts.rejected.by_reason), "whole": facts.rejected.whole},
        "unfit": facts.unfit,
        "windows": vars(windows),
        "workers": facts.workers,
        "plan": None if plan is None else vars(plan),
        "members": [{**vars(member), "partitions": list(member.partitions)} for member in facts.members],
        "parts": [
            {"name": part.name, "at": part.at, "said": part.telemetry.model_dump(mode="json")}
            for part in facts.parts
        ],
        "telemetry_ignored": facts.ignored,
        "stages": [vars(stage) for stage in facts.stages],
        "views": {
            view.name: {**vars(view.windows), "stages": [vars(stage) for stage in view.stages]}
            for view in facts.views
        },
        "wrong": [finding.text for finding in troubles],
    }


def _table(facts: Facts, columns: Columns) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("partition", justify="right", no_wrap=True)
    for header in columns:
        # A narrow terminal breaks a time between day and hour.
        table.add_column(header, justify="right", overflow="fold", no_wrap=header not in _TIMES)
    for partition in facts.partitions:
        table.add_row(str(partition.partition), *(cell(partition) for cell in columns.values()))
    return table


def _counted(name: str) -> Callable[[PartitionFacts], str]:
    """A cell that shows this field of the committed state."""
    return lambda partition: "-" if partition.state is None else f"{getattr(partition.state, name):,}"


def _share(partition: PartitionFacts) -> str:
    return (
        share(partition.state.rejected, partition.state.read)
        if partition.state is not None and partition.state.read
        else "-"
    )


def _standing(partition: PartitionFacts) -> str:
    if partition.state is None:
        return "not begun"
    return "ended" if partition.ended else "idle" if partition.state.asleep else ""


Columns = dict[str, Callable[[PartitionFacts], str]]
_TIMES = ("watermark (UTC)", "mark (UTC)")
_PLACES: Columns = {
    "begin": _counted("begin"),
    "committed": _counted("offset"),
    "end": lambda partition: f"{partition.log_end:,}",
    "lag": lambda partition: f"{partition.lag:,}",
    _TIMES[0]: lambda partition: moment(partition.watermark),
    _TIMES[1]: lambda partition: moment(partition.mark),
}
_COUNTS: Columns = {
    "read": _counted("read"),
    "routed": _counted("routed"),
    "filtered": _counted("filtered"),
    "rejected": _counted("rejected"),
    "share": _share,
    "": _standing,
}


def _partition(partition: PartitionFacts) -> dict[str, Any]:
    state = partition.state
    counted = {
        name: None if state is None else getattr(state, name)
        for name in ("read", "routed", "filtered", "rejected")
    }
    return {
        "partition": partition.partition,
        "begin": None if state is None else state.begin,
        "committed": None if state is None else state.offset,
        "log_begin": partition.log_begin,
        "log_end": partition.log_end,
        "lag": partition.lag,
        "watermark": partition.watermark,
        "mark": partition.mark,
        "idle": state is not None and state.asleep,
        "ended": partition.ended,
        "max_jump": partition.max_jump,
        "max_jump_from": partition.max_jump_from,
        "out_of_orderness": partition.out_of_orderness,
        "out_of_orderness_from": partition.out_of_orderness_from,
        **counted,
    }


def _rejected(facts: Facts) -> str:
    total = facts.total("rejected")
    if not total:
        return "none"
    rejected = facts.rejected
    reasons = by_reason(rejected.by_reason)
    scope = "" if rejected.whole else f" (of the newest {sum(rejected.by_reason.values()):,})"
    return f"{total:,} of {facts.total('read'):,}: {reasons or 'the records are gone'}{scope}"


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
        yield (
            f"next: the window up to {moment(windows.next)} {does} when every partition is past"
            f" {moment(windows.needs)}"
        )


def _plan(facts: Facts) -> str:
    plan = facts.plan
    if plan is None:
        return f"plan: none published, {count(facts.workers, 'worker')} by the settings"
    since = "" if plan.effective_from is None else f", from {moment(plan.effective_from)} on"
    together = f"{count(plan.workers, 'worker')}, {count(plan.reducers, 'bucket')} at once"
    return f"plan: epoch {plan.epoch}, {together}{since}"
