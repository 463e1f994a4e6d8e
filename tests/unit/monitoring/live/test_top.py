"""`evenflow top` as a person uses it: figures, pause, quit, and nothing that a key could do to the
terminal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.widgets import DataTable, Static

from evenflow.reporting.words import printable
from evenflow.telemetry import HotKey
from monitoring.live import top as module
from monitoring.live.glance import BatchesGlance, Glance
from monitoring.live.top import Top, workers
from tests.unit.monitoring.live.test_picture import batch, decision, instance, make


def a_glance(*, keys: tuple[str, ...] = ("hot",)) -> Glance:
    picture, _ = make()
    hottest = [
        HotKey(key=key, length=9, share=0.4, holders=2, workers=[1, 0], parts=[0.75, 0.25]) for key in keys
    ]
    for record in (
        instance(1, [0] * 4),
        instance(2, [70, 10, 10, 10], hottest=hottest),
        batch(),
        decision(epoch=3),
    ):
        picture.add(record)
    return picture.glance()


def played(glance: Glance, play: Callable[[Top, Any], Any], *, size: tuple[int, int] = (120, 40)) -> Top:
    looks = []

    def look() -> Glance:
        looks.append(1)
        return glance

    async def run() -> Top:
        app = Top(look, every=3600)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await play(app, pilot)
        return app

    return asyncio.run(run())


def shown(app: Top, name: str) -> str:
    return str(app.query_one(name, Static).render())


@pytest.mark.parametrize("size", [(120, 40), (40, 15)], ids=["wide", "small"])
def test_the_screen_shows_answers_loads_keys_and_decisions(size: tuple[int, int]) -> None:
    async def play(app: Top, pilot: Any) -> None:
        assert "Is it keeping up? yes" in shown(app, "#answers")
        assert "Is it balanced? no" in shown(app, "#answers")
        assert "replication 1.50" in shown(app, "#flow")
        assert "70/s" in shown(app, "#workers")
        assert "plan 3: p 4→6" in shown(app, "#decisions")
        cells = [str(cell) for cell in app.query_one("#keys", DataTable).get_row_at(0)]
        assert cells == ["hot", "40.0%", "2", "1: 75%, 0: 25%"]
        assert app.query_one("#parts", DataTable).row_count == 2

    played(a_glance(), play, size=size)


def test_space_pauses_and_q_quits() -> None:
    async def play(app: Top, pilot: Any) -> None:
        await pilot.press("space")
        assert (app.paused, app.sub_title) == (True, "paused")
        await pilot.press("space")
        assert not app.paused
        await pilot.press("q")

    assert played(a_glance(), play).return_code == 0


@pytest.mark.parametrize("key", ["[bold red]x[/]", "\x1b[2J", "[/]", "", "\\", "a\nb", "\u202ekey"])
def test_a_hostile_key_is_text(key: str) -> None:
    async def play(app: Top, pilot: Any) -> None:
        cell = str(app.query_one("#keys", DataTable).get_row_at(0)[0])
        assert cell.isprintable()
        assert "\x1b" not in cell

    played(a_glance(keys=(key,)), play)


@pytest.mark.parametrize(
    "words", ["[link=x]\x1b[31m[/", "[/", "[/x[y]", "[INFO] hello", "ends in a \\", "{}", "[b"]
)
def test_a_hostile_reason_or_name_is_text(words: str) -> None:
    glance = a_glance()
    decisions = [replace(each, reason=words) for each in glance.decisions]
    instances = [replace(each, name=words) for each in glance.instances]

    async def play(app: Top, pilot: Any) -> None:
        assert printable(words) in shown(app, "#decisions")
        assert "\x1b" not in shown(app, "#decisions")
        assert str(app.query_one("#parts", DataTable).get_row_at(1)[0]) == f"partitioner {printable(words)}"

    played(replace(glance, decisions=decisions, instances=instances), play)


def test_a_pipeline_of_which_nothing_is_known_is_shown_as_that() -> None:
    async def play(app: Top, pilot: Any) -> None:
        assert "not known" in shown(app, "#answers")
        assert "no controller has decided anything yet" in shown(app, "#decisions")
        table = app.query_one("#parts", DataTable)
        heard = [(str(table.get_row_at(row)[0]), str(table.get_row_at(row)[-1])) for row in range(2)]
        assert heard == [("Spark", "not yet"), ("partitioner", "not yet")]

    played(make()[0].glance(), play)


def test_micro_batches_of_all_instances_have_one_line() -> None:
    glance = a_glance()
    known = BatchesGlance(
        interval_s=1.5, clock="processing", count=1_200, cut_short=3, held=70, tuples=9, split=1, took_s=0.04,
        late=0.03
    )  # fmt: skip
    slower = replace(known, count=4, took_s=0.1, late=0.2)
    first = replace(known, count=0, cut_short=0, held=0, tuples=None, split=None, took_s=None, late=None)
    instances = [replace(glance.instances[0], batches=one) for one in (None, known, slower, first)]

    async def play(app: Top, pilot: Any) -> None:
        line = shown(app, "#flow").splitlines()[-1]
        assert (
            line == "micro-batches of 1.5 s of processing time: 1,204, 6 cut short, 140 tuples wait, "
            "the slowest of the last ones took 0.10 s, the latest came 20% of its interval late"
        )

    played(replace(glance, instances=instances), play, size=(200, 40))


def test_of_a_hundred_workers_the_fullest_are_shown() -> None:
    glance = replace(a_glance(), loads=[float(number) for number in range(100)])
    lines = [str(line) for line in workers(glance)]
    assert len(lines) == module._MOST_WORKERS + 1
    assert "60 workers with less" in lines[-1]
    assert lines[0].startswith("  60 ")


def test_a_hundred_workers_and_instances_leave_the_screen_readable() -> None:
    glance = a_glance()
    silent = replace(glance.instances[0], name="gone", silent=99.0)
    many = [silent, *(replace(glance.instances[0], name=str(number)) for number in range(99))]

    async def play(app: Top, pilot: Any) -> None:
        table = app.query_one("#parts", DataTable)
        names = [str(table.get_row_at(row)[0]) for row in range(table.row_count)]
        assert names[:2] == ["fused", "partitioner gone"], "what is wrong stands above"
        assert names[-1] == "and 80 partitioners more"
        assert len(names) == 22
        assert "100 partitioners" in shown(app, "#flow")
        assert "60 workers with less" in shown(app, "#workers")

    played(replace(glance, instances=many, loads=[float(number) for number in range(100)]), play)
