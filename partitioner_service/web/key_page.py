"""The page `/key/`: where a key goes at this instance, and why. As HTML for people, and as JSON."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from evenflow.errors import ConfigError, EvenflowError
from evenflow.partitioners.preview import TUPLES
from evenflow.reporting.words import clock, moment
from evenflow.settings import Settings
from evenflow.settings.typed_key import example, key_bytes
from monitoring.web.headers import headers_of

PATH = "/key/"
PATIENCE = 5.0
"""Seconds in which the data plane has to come round."""
_STYLE = (
    "body{font:16px system-ui;margin:2em;max-width:60em}td,th{padding:.1em 1.5em .1em 0;text-align:left;"
    "vertical-align:top}code{overflow-wrap:anywhere}"
)
_MOST_SHOWN = 64
"""Workers that a row of the HTML page lists. JSON has all."""


@dataclass(frozen=True)
class Question:
    """A question as it came over HTTP."""

    typed: bytes | None
    """The key. None if the page was opened without one."""
    wants_json: bool
    """Whether the answer is to be JSON and no page."""


@dataclass(frozen=True)
class Page:
    """An answer over HTTP."""

    status: int
    """HTTP status code."""
    answer: Mapping[str, Any] | None = None
    """The answer for the key that was asked for. None if there is none."""
    trouble: tuple[str, str] | None = None
    """What is wrong, and a hint, in place of an answer. None if nothing is."""


def question_of(raw_path: str, accept: str) -> Question:
    """The question in a request.
    raw_path: path and query as the request has them, still with their percent signs.

    The key is the rest of the path, `/key/<key>/`, or the parameter of `/key/?key=<key>`. Both are
    percent-encoded bytes. A key that ends in a slash, or that is a dot or two, is better asked for as a
    parameter, because clients may change such a path.
    """
    path, _, query = raw_path.partition("?")
    fields = [part.partition("=") for part in query.split("&")]
    parameters = {name: unquote_to_bytes(value.replace("+", " ")) for name, _, value in fields if name}
    typed = parameters.get("key")  # b"" if the form was sent empty, None if nothing was asked
    rest = path.removeprefix(PATH)
    if typed is None and rest:
        typed = unquote_to_bytes(rest.removesuffix("/"))
    return Question(typed, parameters.get("format") == b"json" or "application/json" in accept)


async def answered(
    settings: Settings,
    question: Question,
    ask: Callable[[bytes], Future[dict[str, Any]]],
    *,
    patience: float = PATIENCE,
) -> Page:
    """The answer to a question. ask: puts it to the data plane. patience: seconds to wait for the data
    plane.
    """
    if question.typed is None:
        return Page(200)
    try:
        key = key_bytes(settings.query, question.typed)
    except ConfigError as error:
        return Page(400, trouble=(error.message, error.hint or ""))
    try:
        waiting = asyncio.wrap_future(ask(key))
        return Page(200, answer=await asyncio.wait_for(waiting, patience))
    except TimeoutError:
        return Page(
            503,
            trouble=(
                (
                    f"the data plane has not come round within {patience:g} s: it starts,"
                    " waits for Kafka, or has ended"
                ),
                "see /status/ and /healthy/, and ask again",
            ),
        )
    except EvenflowError as error:
        return Page(503, trouble=(error.message, error.hint or ""))
    except Exception as error:
        return Page(500, trouble=(f"the question failed: {type(error).__name__}", "the service goes on"))


def as_json(page: Page) -> dict[str, Any]:
    """The page as a JSON object."""
    if page.answer is not None:
        return dict(page.answer)
    error, hint = page.trouble or ("no key was asked for", f"ask for {PATH}<key>/ or {PATH}?key=<key>")
    return {"error": error, "hint": hint}


def as_html(settings: Settings, page: Page) -> str:
    """The page as an HTML document."""
    body = _FORM.format(
        example=html.escape(example(settings.query)), key=html.escape(settings.query.key_name)
    )
    if page.trouble is not None:
        error, hint = page.trouble
        body += f"<p><strong>{html.escape(error)}</strong><br>{html.escape(hint)}</p>"
    if page.answer is not None:
        rows = "".join(
            f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>"
            for name, text in figures(page.answer).items()
        )
        body += f"<h2><code>{html.escape(page.answer['key'])}</code></h2><table>{rows}</table>"
    words = {"query": settings.query.name, "instance": settings.partitioner.instance}
    return _PAGE.format(body=body, style=_STYLE, **{name: html.escape(word) for name, word in words.items()})


_FORM = """<form action="/key/"><label>key ({key}), as it stands in results, such as <code>{example}</code>:
<input name="key" autocomplete="off"></label> <button>ask</button></form>"""
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>evenflow {query}: a key</title><style>{style}</style></head>
<body><h1>Where does a key go?</h1><p>Query {query}, partitioner instance {instance}. <a href="/">instance</a></p>
{body}</body></html>
"""
HEADERS = headers_of(f"<style>{_STYLE}</style>", form=True)


def figures(answer: Mapping[str, Any]) -> dict[str, str]:
    """The lines of the HTML page, name by name. Not escaped yet."""
    at = answer["event_time"]
    holders = [_holder(holder) for holder in answer["holders"]]
    recent = answer["recent"]
    return {
        "rule": answer["rule"],
        "home": "none" if answer["home"] is None else f"worker {answer['home']}",
        "next tuple": "any worker" if answer["next_workers"] is None else _workers(answer["next_workers"]),
        "holders or candidates": _some(holders) or "not known",
        "share, by the partitioner": _percent(answer["share"]),
        "share lately, by a sample": (
            "not among the hottest keys of the last period"
            if recent is None
            else f"{_percent(recent['share'])}: {_parts(recent)}"
        ),
        "values (Q) by worker": (
            "none"
            if answer["values"] is None
            else _some([f"{worker}: {value:.3f}" for worker, value in enumerate(answer["values"])])
        ),
        f"next {TUPLES} tuples": (
            answer["next_tuples_note"]
            if answer["next_tuples"] is None
            else _some([f"worker {worker}: {many}" for worker, many in answer["next_tuples"].items()])
        ),
        "algorithm": (
            f"{answer['partitioner']}, {answer['workers']} workers, plan epoch {answer['plan_epoch']}"
        ),
        "event time": "no tuple yet" if at is None else moment(at),
        "size of the key": f"{answer['key_bytes']:,} bytes",
    }


def _some(words: list[str]) -> str:
    more = len(words) - _MOST_SHOWN
    return ", ".join(words[:_MOST_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _workers(workers: list[int]) -> str:
    return "worker " + _some([str(worker) for worker in workers])


def _percent(share: float | None) -> str:
    return "not counted" if share is None else f"{share:.2%}"


def _holder(holder: Mapping[str, Any]) -> str:
    load = "" if holder["load"] is None else f", load {holder['load']:,.0f}"
    last = "" if holder["last"] is None else f", last in the slide of {clock(holder['last'])}"
    return f"worker {holder['worker']}{load}{last}"


def _parts(recent: Mapping[str, Any]) -> str:
    parts = zip(recent["workers"], recent["parts"], strict=False)
    return _some([f"worker {worker} got {part:.0%}" for worker, part in parts])
