"""What a query has left behind: topics, consumer groups, checkpoints and, if asked for, its results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.views import queries
from spark_consumers.sinks import sink_of
from topics.admin import ROLES, describe, topic_names
from topics.groups import group_names
from topics.state import TopicState
from workbench.assist.activity import read_activity
from workbench.query_folders import QueryFolder, folder_at

_SILENT_SECONDS = 15.0
"""A Spark application that is silent for this long has stopped. It reports every five seconds, also while
it is idle.
"""


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder and its size."""

    at: QueryFolder
    """Where the folder is."""
    files: int
    """Files in it, at any depth."""
    bytes: int
    """Bytes of these files together."""

    @classmethod
    def counted(cls, at: QueryFolder) -> Folder:
        """The folder as it is now."""
        sizes = [file.size for file in at.files()]
        return cls(at=at, files=len(sizes), bytes=sum(sizes))


@dataclass(frozen=True, kw_only=True)
class Remains:
    """What is to be removed."""

    topics: tuple[TopicState, ...]
    """Topics with their records."""
    groups: tuple[str, ...]
    """Names of consumer groups."""
    folders: tuple[Folder, ...]
    """Checkpoints and, if asked for, results."""
    stays: tuple[str, ...]
    """What stays although it belongs to the query, in words."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not (self.topics or self.groups or self.folders)

    def lines(self) -> Iterator[str]:
        """One line for each thing, with its size."""
        for topic in self.topics:
            yield f"topic   {topic.name}: {topic.partitions} partitions, {topic.records:,} offsets"
        for group in self.groups:
            yield f"group   {group}"
        for folder in self.folders:
            yield f"folder  {folder.at.place}: {folder.files:,} files, {folder.bytes:,} bytes"


def find(settings: Settings, *, results: bool) -> Remains:
    """What there is now of the query and its views. The input topic and the audit log are never part of it.

    results: whether the places that the settings name for results go too. Such a place must hold nothing but
    results. Raises ServiceError if the broker does not answer, and IncompatibleStateError for a folder that
    holds other things.
    """
    names = topic_names(settings.kafka)
    mine: list[str] = []
    folders: list[QueryFolder] = []
    stays: list[str] = []
    for query_settings in queries(settings):
        mine += [query_settings.topic(role) for role in ROLES if role not in ("input", "results", "audit")]
        checkpoints, staying = _checkpoint(query_settings)
        placed, left = _results(query_settings, results)
        mine += [
            f"{query_settings.query.name}.results",
            *(place for place in placed if isinstance(place, str)),
        ]
        folders += [*checkpoints, *(place for place in placed if isinstance(place, QueryFolder))]
        stays += [*staying, *left, *sink_of(query_settings).keeps(query_settings)]
    input_topic, audit = settings.topic("input"), settings.topic("audit")
    topics = sorted({*mine} & {*names} - {input_topic})
    return Remains(
        topics=tuple(describe(settings.kafka, topics).values()),
        groups=tuple(own_groups(settings.query.name, group_names(settings.kafka), names)),
        folders=tuple(Folder.counted(place) for place in folders if place.exists()),
        stays=(
            f"topic {input_topic}: the input is yours",
            *([f"topic {audit}: who did what to the query (`evenflow audit`)"] if audit in names else []),
            *stays,
        ),
    )


def own_groups(query: str, groups: Iterable[str], topics: Iterable[str]) -> list[str]:
    """Those of these groups that belong to the query. topics: all that exist, which tell what other
    queries there are.
    """
    # Another query may be called `<query>.control.x`. Its groups begin as those of this query do.
    others = [name.removesuffix("routed") for name in topics if name.endswith(".routed")]
    longer = tuple(other for other in others if other.startswith(f"{query}.") and other != f"{query}.")
    return [
        group
        for group in groups
        if (group == f"{query}.partitioner" or group.startswith(f"{query}.control."))
        and not group.startswith(longer)
    ]


def refuse_while_alive(
    settings: Settings,
    doing: str,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    waiting: Callable[[str], None] = lambda line: None,
) -> None:
    """Raise IncompatibleStateError if a service of the query is running. The error says which.

    A Spark stage or a controller that reported lately may have stopped since. This function then waits up to
    15 s, and raises if it reports again. doing: what would be done to the query, for the error. now: seconds
    since 1970. waiting: called with a line of text before the wait.
    """
    first = None
    while True:
        activity = read_activity(settings, whoever=True)
        last = activity.heard_last
        if activity.owners:
            raise _alive(settings, doing, activity.owners)
        left = 0.0 if last is None else last.at / 1000 + _SILENT_SECONDS - now()
        if last is None or left <= 0:
            return
        if first is None:
            first = last
            waiting(
                f"{last.name} reported just now: waiting up to {left:.0f} s to see whether it has stopped"
            )
        if last.at > first.at:
            raise _alive(settings, doing, [f"{last.name} reports"])
        sleep(min(1.0, left))


def _alive(settings: Settings, doing: str, who: list[str]) -> IncompatibleStateError:
    return IncompatibleStateError(
        f"query {settings.query.name} is being worked on, so nothing is {doing}:\n  " + "\n  ".join(who),
        hint="stop its services",
    )


def _checkpoint(settings: Settings) -> tuple[list[QueryFolder], list[str]]:
    place = settings.query_checkpoint
    folder = folder_at(settings, place)
    if folder is None:
        return [], [f"checkpoint {place}: only Spark can reach it, delete it by hand"]
    return [folder], []


def _results(settings: Settings, with_results: bool) -> tuple[list[str | QueryFolder], list[str]]:
    """Of the places that the settings name for results: the topics and folders that go,
    and in words what stays.
    """
    sink = sink_of(settings)
    place: str | QueryFolder | None
    if "results" in sink.topics:
        place = settings.results.topic
    else:
        named = settings.results.folder
        if named is None:
            return [], [sink.by_hand(settings)]
        place = folder_at(settings, named)
        if place is None:
            return [], [f"results in {named}: only Spark can reach them, delete them by hand"]
    if place is None or place == f"{settings.query.name}.results":
        return [], []
    if not with_results:
        where = place.place if isinstance(place, QueryFolder) else place
        return [], [f"results in {where}: they go only with --results; what begins anew must write elsewhere"]
    if isinstance(place, QueryFolder):
        form = settings.results.form
        assert form is not None  # `results.folder` is None for a sink of one's own
        _refuse_foreign(place, form.suffixes)
    return [place], []


def _refuse_foreign(folder: QueryFolder, suffixes: tuple[str, ...]) -> None:
    """Raise IncompatibleStateError for a folder that holds more than files of these suffixes,
    logs and checksums.
    """
    foreign = {
        name for name in folder.names() if not (name.endswith((*suffixes, ".crc")) or name.startswith("_"))
    }
    if foreign:
        raise IncompatibleStateError(
            f"results.path {folder.place} also holds {', '.join(sorted(foreign)[:5])}",
            hint="that is not of evenflow: delete the results there by hand, and leave out --results",
        )
