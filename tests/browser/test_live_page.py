"""The live page in a real browser: what it shows is what the picture says, it goes on, and a key can do
nothing to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from evenflow.telemetry import ExchangeState, HotKey
from monitoring.instruments.controller import ControllerInstruments
from monitoring.live.glance import Glance
from monitoring.serving import served
from tests.unit.monitoring.live.test_picture import SETTINGS, batch, decision, instance, make

pytestmark = [pytest.mark.browser, pytest.mark.more, pytest.mark.xdist_group("live_page")]
_PATIENCE = 15_000
HOSTILE = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


@dataclass
class Shown:
    """A page that is open, what it is told, and what the browser complained of."""

    page: Page
    told: list[Glance | None]
    complaints: list[str] = field(default_factory=list)

    def tell(self, glance: Glance | None) -> None:
        """Let the page see this, and wait until it has asked again."""
        before = int(self.page.evaluate("document.body.dataset.updates || 0"))
        self.told[0] = glance
        if glance is not None:
            self.page.wait_for_function(
                "before => Number(document.body.dataset.updates) > before + 1", arg=before, timeout=_PATIENCE
            )

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)


@pytest.fixture
def shown(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Shown]:
    """param: options of the browser's context."""
    told: list[Glance | None] = [a_glance()]
    context = browser.new_context(**getattr(request, "param", {}))
    page = context.new_page()
    complaints: list[str] = []
    page.on(
        "console",
        lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    with served(ControllerInstruments(SETTINGS), "127.0.0.1", 0, setting="x", glance=lambda: told[0]) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_function("() => document.body.dataset.updates", timeout=_PATIENCE)
        yield Shown(page, told, complaints)
        context.close()


def a_glance(**changed: Any) -> Glance:
    picture, _ = make()
    hottest = [
        HotKey(key="hot", length=3, share=0.4, holders=2, workers=[1, 0], parts=[0.75, 0.25]),
        HotKey(key=HOSTILE, length=len(HOSTILE), share=0.1, holders=1, workers=[2], parts=[1.0]),
        HotKey(key="", length=0, share=0.01, holders=1, workers=[2], parts=[1.0]),
    ]
    records = [
        instance(1, [0] * 4), instance(2, [700, 100, 100, 100], hottest=hottest), batch(1, load=0.5), batch(2,
        load=0.95),
        decision(epoch=3, zone=3, reason=HOSTILE), decision(held=True, reason="no record of fused"),
    ]  # fmt: skip
    for record in records:
        picture.add(record)
    return replace(picture.glance(), **changed)


def test_the_page_shows_what_the_picture_says(shown: Shown) -> None:
    assert shown.page.title() == "evenflow q"
    answers = shown.text("#answers")
    assert "W is 0.95: overload" in answers
    assert "the fullest worker has 45.0% of all tuples more than the mean" in answers
    flow = shown.text("#flow")
    for words in (
        "100 tuples/s",
        "lag 5",
        "p = 4",
        "replication 1.50",
        "99 % within 9.0 s",
        "2 windows open",
    ):
        assert words in flow
    assert "worker 0 has 700, 2.80 times that" in shown.text("#loads-said")
    heights = shown.page.eval_on_selector_all(
        "#bars div:not(.mean)", "bars => bars.map(bar => bar.style.height)"
    )
    assert [float(height.rstrip("%")) for height in heights] == pytest.approx(
        [100, 14.2857, 14.2857, 14.2857], abs=0.01
    )
    assert shown.page.get_attribute("#w", "aria-label") == "W of the last 2 micro-batches; now 0.95"
    first = [cell.inner_text() for cell in shown.page.query_selector_all("#hot tr:first-child td")][:3]
    assert first == ["hot", "40.0 %", "2"]
    assert (
        shown.page.get_attribute("#hot tr:first-child .split", "aria-label") == "worker 1 75 %, worker 0 25 %"
    )
    assert "plan 3: p 4 to 6, r 1 to 1" in shown.text("#decisions")
    assert "held" in shown.text("#decisions")
    assert shown.complaints == []


def test_an_instance_shows_its_exchange_and_one_that_tells_nothing_shows_none(shown: Shown) -> None:
    picture, _ = make()
    known = ExchangeState(
        instances=2,
        elected=True,
        round=7,
        members=2,
        age_ms=1_500,
        unanswered=1,
        rate_in=2_051.7,
        rate_out=683.0,
    )
    first = known.model_copy(update={"round": None, "members": 0, "rate_in": None, "rate_out": None})
    for name, exchange in (("telling", known), ("first second", first), ("alone", None)):
        picture.add(instance(1, [0] * 4, name, exchange=exchange))
    shown.tell(picture.glance())
    cells = {
        row.query_selector_all("td")[0].inner_text(): row.query_selector_all("td")[6].inner_text()
        for row in shown.page.query_selector_all("#instances tr")
    }
    assert cells == {
        "telling": "table 7 of 2, 1.5 s old, tells 683 B/s, hears 2,052 B/s, makes them",
        "first second": "no table yet, makes them",
        "alone": "none",
    }
    assert shown.complaints == []


def test_new_figures_arrive_and_a_pause_holds_them(shown: Shown) -> None:
    shown.tell(a_glance(rate=12_345.0))
    assert "12,345 tuples/s" in shown.text("#flow")
    shown.page.click("#pause")
    assert shown.page.get_attribute("#pause", "aria-pressed") == "true"
    shown.told[0] = a_glance(rate=99_999.0)
    shown.page.wait_for_timeout(2_500)
    assert "12,345 tuples/s" in shown.text("#flow")
    shown.page.click("#pause")
    shown.tell(a_glance(rate=99_999.0))
    assert "99,999 tuples/s" in shown.text("#flow")


def test_a_hostile_key_and_reason_are_text(shown: Shown) -> None:
    assert HOSTILE in shown.text("#hot")
    assert HOSTILE in shown.text("#decisions")
    assert "(empty)" in shown.text("#hot")
    assert shown.page.query_selector("main img, main script") is None
    assert shown.page.title() == "evenflow q"
    assert shown.complaints == []


def test_nothing_but_the_page_itself_may_run_or_be_loaded(shown: Shown) -> None:
    blocked = shown.page.evaluate("""async () => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            const elsewhere = await fetch("http://127.0.0.1:1/").then(() => "answered", () => "refused");
            return [window.ran === undefined, elsewhere];
        }""")
    assert blocked == [True, "refused"]
    assert any("Content Security Policy" in complaint for complaint in shown.complaints)


def test_a_server_that_is_gone_is_said_and_then_forgotten(shown: Shown) -> None:
    shown.tell(None)
    shown.page.wait_for_function(
        "() => document.getElementById('moment').textContent.includes('no answer since')", timeout=_PATIENCE
    )
    shown.tell(a_glance())
    assert "UTC" in shown.text("#moment")
    assert "no answer" not in shown.text("#moment")


@pytest.mark.parametrize("shown", [{"viewport": {"width": 360, "height": 740}}], indirect=True)
@pytest.mark.parametrize("workers", [4, 1_000])
def test_at_phone_width_nothing_sticks_out(shown: Shown, workers: int) -> None:
    shown.tell(a_glance(loads=[float(number % 50) for number in range(workers)], hottest=[{
        "key": "k" * 100, "length": 100, "share": 0.5, "holders": 64, "workers": list(range(64)),
        "parts": [1 / 64] * 64,
    }]))  # fmt: skip
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
    _keep(shown.page, f"phone-{workers}")


@pytest.mark.parametrize(
    "shown", [{"color_scheme": "dark"}, {"color_scheme": "light"}], indirect=True, ids=["dark", "light"]
)
def test_words_can_be_read_in_light_and_dark(shown: Shown) -> None:
    contrast = shown.page.evaluate("""() => {
            const light = (colour) => {
                const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3).map((v) => v / 255)
                    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const ground = (element) => {
                for (let at = element; at; at = at.parentElement) {
                    const colour = getComputedStyle(at).backgroundColor;
                    if (!colour.endsWith(", 0)") && colour !== "transparent") return colour;
                }
                return "rgb(255, 255, 255)";
            };
            const all = [...document.querySelectorAll("h1, h2, .word, .faint, td, th, .edge, b, button")];
            return Math.min(...all.map((element) => {
                const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
                return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            }));
        }""")
    assert contrast >= 4.5, "WCAG AA"
    _keep(
        shown.page,
        "scheme-"
        + shown.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'"),
    )


def test_everything_can_be_reached_with_the_keyboard_and_has_a_name(shown: Shown) -> None:
    reached = []
    for _ in range(6):
        shown.page.keyboard.press("Tab")
        reached.append(shown.page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"skip", "pause", "decisions"} <= set(reached)
    unnamed = shown.page.evaluate(
        """() => [...document.querySelectorAll("[role=img], section")].filter((element) =>
            !element.getAttribute("aria-label")
            && !document.getElementById(element.getAttribute("aria-labelledby"))).length"""
    )
    assert unnamed == 0


def test_times_beyond_the_calendar_stop_nothing(shown: Shown) -> None:
    glance = a_glance()
    late = [replace(each, at=2**62) for each in glance.decisions]
    assert glance.results is not None
    shown.tell(replace(glance, decisions=late, results=replace(glance.results, newest=17 * 10**17)))
    assert "closed to beyond the calendar" in shown.text("#flow")
    assert "plan 3" in shown.text("#decisions")
    assert shown.complaints == []


def test_a_pipeline_of_which_nothing_is_known_has_a_page(shown: Shown) -> None:
    shown.tell(make()[0].glance())
    assert "not known" in shown.text("#answers")
    assert "No controller has decided anything yet" in shown.text("#decisions")
    assert shown.text("#instances") == shown.text("#stages") == "none heard yet"
    assert " 0" not in shown.text("#flow").replace("0 instances", ""), "what is not known is no 0"
    assert shown.complaints == []


@pytest.mark.parametrize("shown", [{"viewport": {"width": 360, "height": 740}}], indirect=True)
def test_of_a_hundred_instances_and_a_thousand_partitions_those_that_are_silent_stand_above(
    shown: Shown,
) -> None:
    glance = a_glance()
    one = replace(glance.instances[0], owned=10, slowest=999)
    many = [replace(one, name="gone", silent=99.0), *(replace(one, name=f"i-{n}") for n in range(99))]
    shown.tell(replace(glance, instances=many, loads=[float(n) for n in range(100)]))
    rows = shown.text("#instances").splitlines()
    assert len(rows) == 21
    assert rows[0].startswith("gone")
    assert rows[-1] == "and 80 more"
    assert "100 instances" in shown.text("#flow")
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert shown.complaints == []


def _keep(page: Page, name: str) -> None:
    """A picture to look at, where somebody wants one."""
    folder = os.environ.get("EVENFLOW_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
