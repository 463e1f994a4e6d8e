"""What a person sees of a closed loop: steps while it runs, then the course batch by batch, and the
verdict.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from workbench.demo.screen import Screen
from workbench.elastic.course import Course
from workbench.elastic.course_figures import CourseVerdict, one_stage, zone_of
from workbench.elastic.loop import LoopObserver, LoopOptions, LoopResult, run_loop

_ZONES = {1: "1 under-used", 2: "2 stable", 3: "3 overload"}
_BAR = 20


def show_loop(
    options: LoopOptions, console: Console, *, page: Callable[[str], None] = lambda address: None
) -> LoopResult:
    """Run a loop and show it. page: gets the address of the live page if the ports are known."""
    screen = Screen(console)
    with screen.progress() as bars:

        def opened(address: str) -> None:
            screen.say(f"live page: {address}")
            page(address)

        onlooker = LoopObserver(
            say=screen.say, replayed=lambda sent, total: bars.show("replayed", sent, total), page=opened
        )
        result = run_loop(options, onlooker)
    console.print(course_table(result.course))
    for change in result.course.changes:
        screen.say(f"at {change.at:5.1f} s: plan {change.epoch}, p {change.p}, r {change.r}: {change.reason}")
    screen.say(verdict_text(options, result.verdict))
    screen.say(result.report.text())
    return result


def course_table(course: Course) -> Table:
    """A table with a line for each micro-batch."""
    table = Table(title="the course, micro-batch by micro-batch", title_justify="left")
    for heading in ("s", "tuples/s", "W", "", "zone", "p", "executors", "latency"):
        table.add_column(heading, justify="left" if heading in ("", "zone") else "right", no_wrap=True)
    for batch in one_stage(course.batches):
        latency = _latest(course.latencies, batch.at)
        table.add_row(
            f"{batch.at:.0f}",
            f"{_latest(course.rates, batch.at) or 0:,.0f}",
            f"{batch.load:.2f}",
            "█" * min(_BAR, round(_BAR / 2 * batch.load)),
            _ZONES[zone_of(batch)],
            str(_p_at(course, batch.at)),
            "" if batch.executors is None else str(batch.executors),
            "" if latency is None else f"{latency / 1000:.1f} s",
        )
    return table


def verdict_text(options: LoopOptions, verdict: CourseVerdict) -> str:
    """The verdict in words."""
    late = verdict.slo_violations
    slo = (
        "no window was due"
        if late is None
        else f"{late:.0%} of windows later than {verdict.slo_ms / 1000:g} s"
    )
    return (
        f"{options.policy or 'no policy'} on {options.shape.name}: {verdict.overloaded:.0%} of"
        f" {verdict.seconds:.0f} s in overload, {verdict.under_used:.0%} under-used,"
        f" {verdict.slot_seconds:.0f} core-seconds of executors, {verdict.over_provisioned:.0f} of them more"
        f" than needed, {slo}, {verdict.actions} plans published"
    )


def fields(result: LoopResult) -> dict[str, object]:
    """The result as plain JSON."""
    options = result.options
    return {
        "policy": options.policy or "none",
        "profile": options.shape.name,
        "wiring": options.wiring,
        "reserve": options.reserve,
        **asdict(result.verdict),
        "differences": result.report.differences,
        "tuples": result.report.read,
        "rows": result.report.rows,
        "most_executors": result.course.most_executors,
        "course": [
            {
                "at": round(batch.at, 1),
                "W": round(batch.load, 3),
                "zone": zone_of(batch),
                "rate": _latest(result.course.rates, batch.at),
                "p": _p_at(result.course, batch.at),
                "executors": batch.executors,
                "latency_ms": _latest(result.course.latencies, batch.at),
            }
            for batch in one_stage(result.course.batches)
        ],
        "plans": [asdict(change) for change in result.course.changes],
        "provenance": dict(result.provenance),
    }


def _latest(series: tuple[tuple[float, float], ...], at: float) -> float | None:
    """The last value of a series (time, value) at or before a time. None if there is none yet."""
    before = bisect_right(series, (at, float("inf")))
    return series[before - 1][1] if before else None


def _p_at(course: Course, at: float) -> int:
    before = [change.p for change in course.changes if change.at <= at]
    return before[-1] if before else course.p
