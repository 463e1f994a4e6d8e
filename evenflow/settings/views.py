"""Views: further aggregates and windows over tuples that a query has read and routed once.

For the Spark stages, the results and `verify`, a view is a query of its own. Its name is `<query>.<view>`,
and `view` makes its settings. A view has its own partials, results, telemetry and checkpoint. It shares with
its query what it reads: the input, the routed frames, the plan and the rejected records. So the query's slide
decides whether a tuple is late, whatever the view's slide is. Tuples are routed by the query's key, also for
a view that groups by another column: both steps together are exact for any routing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evenflow.errors import ConfigError
from evenflow.grammar.aggregate_spec import Aggregates
from evenflow.grammar.emission import Emission
from evenflow.settings.durations import Duration
from evenflow.text.spelling import did_you_mean

if TYPE_CHECKING:
    from evenflow.settings.model import Settings
    from evenflow.settings.sections.results import ResultsSettings

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
TopicRole = Literal[
    "input",
    "rejected",
    "routed",
    "partials",
    "results",
    "telemetry",
    "plan",
    "snapshots",
    "combiner",
    "reducer",
    "controller",
    "sync",
    "audit",
]
"""The roles that a topic can have for its query.

Each part keeps what it must find again in a topic of its own, because rights in Kafka know topics and no
keys: the partitioner in `snapshots`, the others in the topic that is called as they are.
"""
_ROLES: frozenset[TopicRole] = frozenset(get_args(TopicRole))
OF_THE_QUERY = _ROLES - {"partials", "results", "telemetry"}
"""Roles of the topics that a view shares with its query."""
RESERVED_VIEW_NAMES = _ROLES | {"partitioner", "claim", "control"}
"""Names that no view can have, because `<query>.<name>` already names a topic,
a group or a part of the query.
"""


class View(BaseModel):
    """One view. Its event time, lateness, filter and derived columns are those of its query."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    aggregates: Aggregates = Field(description="Result column = aggregate, as in [query.aggregates].")
    key: str | None = Field(
        default=None,
        description=(
            "Column that the view groups by: of the record, derived or of the lookup file. A tuple without it"
            " is in no window of the view. None: the query's key."
        ),
    )
    window: Duration | None = Field(
        default=None,
        description="Window length (event time), a multiple of the view's slide. None: the query's.",
    )
    slide: Duration | None = Field(
        default=None, description="Slide (event time), a multiple of the query's. None: the query's."
    )
    emit: str = Field(default="all", description="Which rows of a window are emitted, as query.emit.")

    @field_validator("emit")
    @classmethod
    def _emit_is_a_mode(cls, value: str) -> str:
        return str(Emission.parse(value))

    @model_validator(mode="after")
    def _rows_have_room_for_what_the_mode_adds(self) -> View:
        Emission.parse(self.emit).check_names(self.aggregates)
        return self


def check_name(name: str, noun: str = "view") -> None:
    """Raise ValueError for a name that no view can have. noun: what messages call it."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a {noun}: lower case letters, digits, '_' and '-' can (at most 41)"
        )
    if name in RESERVED_VIEW_NAMES:
        raise ValueError(f"{name!r} cannot name a {noun}: the query has a topic or a group of that name")


def view(settings: Settings, name: str) -> Settings:
    """The settings of this view or summary, as if it were a query of its own. ConfigError if there is none
    of that name.
    """
    views = {**settings.query.views, **settings.query.summaries}
    if name not in views:
        raise ConfigError(
            f"the query has no view or summary {name!r}{did_you_mean(name, views)}",
            hint=f"it has: {', '.join(views) or 'none'}",
        )
    results = _results(settings.results, name)
    return settings.as_view(settings.query.view(name), results)


def queries(settings: Settings) -> list[Settings]:
    """These settings, and then the settings of each view and of each summary."""
    return [settings, *(view(settings, name) for name in (*settings.query.views, *settings.query.summaries))]


def _results(of_query: ResultsSettings, name: str) -> ResultsSettings:
    """The results of a view: the same sink as the query's,
    with its topic and folder beside those of the query.
    """
    places = {"topic": of_query.topic, "path": None if of_query.path is None else of_query.path.rstrip("/")}
    return of_query.model_copy(
        update={field: None if place is None else f"{place}.{name}" for field, place in places.items()}
    )


def place_of_views(results: ResultsSettings) -> None:
    """ValueError if the folder of results has no name of its own, because a view's folder is named after
    it.
    """
    path = results.folder
    if path is None:
        return
    _, _, place = path.rstrip("/").rpartition("://")
    bucket = "://" in path and not path.startswith("file:")
    folder = place.rpartition("/")[2]
    if folder in ("", ".", "..") or (bucket and "/" not in place):
        raise ValueError(
            f"results.path = {path!r} has no name of its own, and the results of a view go to '<that"
            " name>.<view>': name a folder in it"
        )
