"""The doctor's checks of the broker: the topics of a query, and what its input topic holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.decide import policy_of
from evenflow.errors import ConfigError, DataLossError, EvenflowError, ServiceError
from evenflow.reporting.words import span
from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.durations import format_duration
from evenflow.settings.views import OF_THE_QUERY, queries
from spark_consumers.sinks import SINKS, sink_of
from topics.admin import check_topic, describe, input_topic, may_write, pipeline_topics, topic_names
from topics.brokers import broker_config
from topics.query.input_topic import by_its_rule, missing_input, other_partitions
from topics.schemas.registry import Registry
from topics.schemas.results import ResultsRegistry
from topics.state import TopicSpec, TopicState
from workbench.assist.doctor.durability import check_durability, internal_topics
from workbench.assist.findings import Finding, unforeseen
from workbench.assist.sample_check.guess import starting_file
from workbench.assist.sample_check.report import SampleReport, check_sample
from workbench.assist.sample_check.sample import TopicRecords, sampled_records
from workbench.assist.sample_check.words import listed

_PATIENCE_MS = 5_000
_RETENTION = "offsets.retention.minutes"
_WEEK = 10_080
"""Minutes: Kafka's default."""
_OFFSETS = "__"
"""Topics whose names begin with this are the broker's own."""


@dataclass(frozen=True)
class DoctorReport:
    """What the doctor says."""

    findings: Sequence[Finding]
    """Findings in the order in which they are printed."""
    look: SampleReport | None = None
    """What the doctor saw in the input topic. None if it did not look."""
    toml: str = ""
    """Lines for evenflow.toml that fit the sample. Empty if nothing needs to change."""


def with_topics(findings: Sequence[Finding], settings: Settings, *, most: int) -> DoctorReport:
    """These findings, and the findings about broker and topics. most: records to look at, 0 for none."""
    patience = min(settings.kafka.request_timeout, _PATIENCE_MS)
    kafka = settings.kafka.model_copy(update={"request_timeout": patience})
    settings = settings.model_copy(update={"kafka": kafka})
    all_findings = [*findings, *check_registry(settings)]
    sample = None
    try:
        names = [name for name in topic_names(kafka) if not name.startswith(_OFFSETS)]
        all_findings.append(Finding("broker", "ok", f"answers at {kafka.bootstrap_servers}"))
        state = _input_state(settings, names)
        all_findings += _said_of_the_query(settings, state)
        if state is None:
            all_findings.append(no_input(settings, names))
        else:
            sample, trouble = _sampled(settings, state, most=most)
            if sample is not None and _described(settings):
                settings = by_its_rule(settings)
            oldest = None if sample is None else sample.oldest
            all_findings += [*trouble, check_input(settings, state, oldest=oldest, now=_now())]
    except (ConfigError, ServiceError) as error:
        # What was found before the broker failed stands.
        all_findings.append(Finding("broker", "problem", error.message, _hint(error)))
    return DoctorReport(all_findings) if sample is None else _with_sample(all_findings, settings, sample)


def check_registry(settings: Settings) -> Iterator[Finding]:
    """Findings about whether the schema registries of records and of results answer.
    None if the settings name none.
    """
    registries: list[tuple[str, str, Callable[[], Registry]]] = []
    if settings.input.registered and settings.input.registry is not None:
        registries.append(("schema registry", settings.input.registry.url, lambda: Registry(settings.input)))
    of_results = settings.results_registry
    if settings.results.takes_registry and of_results is not None:
        section, registry = of_results
        if section != "input.registry":
            registries.append(
                ("schema registry of results", registry.url, lambda: ResultsRegistry(registry, section))
            )
    for name, url, registry_of in registries:
        try:
            subjects = registry_of().subjects()
        except (ConfigError, ServiceError) as error:
            yield Finding(name, "problem", error.message, _hint(error))
        else:
            yield Finding(name, "ok", f"answers at {url}, {len(subjects):,} subjects")


def _input_state(settings: Settings, names: Sequence[str]) -> TopicState | None:
    """The input topic. None if there is none. names: those of the topics that exist."""
    topic = settings.topic("input")
    return describe(settings.kafka, [topic]).get(topic) if topic in names else None


def _said_of_the_query(settings: Settings, state: TopicState | None) -> list[Finding]:
    """The findings about policy and topics of the query. No finding if the settings describe no query."""
    if not _described(settings):
        return []
    offsets = check_offsets(broker_config(settings.kafka))
    return [*check_policy(settings), *offsets, *_query_findings(settings, state)]


def _sampled(
    settings: Settings, state: TopicState, *, most: int
) -> tuple[TopicRecords | None, list[Finding]]:
    """(records of the input topic, None if they cannot be read or `most` is 0; the finding that they
    cannot be read).
    """
    if not most:
        return None, []
    try:
        return sampled_records(settings.kafka, state, most=most), []
    except (ServiceError, DataLossError) as error:
        message = f"the records of {state.name} cannot be read: {error.message}"
        return None, [Finding("sample", "warning", message, _hint(error))]


def _with_sample(findings: Sequence[Finding], settings: Settings, sample: TopicRecords) -> DoctorReport:
    """These findings, and what a sample of the input topic says."""
    try:
        return _with_look(findings, settings, sample)
    except Exception as error:  # whatever the records are, the rest of the report must stand
        return DoctorReport(
            [*findings, Finding("sample", "warning", f"the look failed: {unforeseen(error)}")]
        )


def _with_look(findings: Sequence[Finding], settings: Settings, sample: TopicRecords) -> DoctorReport:
    if not _described(settings) and sample.records:
        message = (
            f"sample of {sample.topic}: {sample.records:,} records; a settings file to begin with is below"
        )
        toml = starting_file(settings, sample, now=_now())
        return DoctorReport([*findings, Finding("sample", "ok", message)], toml=toml)
    look = check_sample(settings, sample, now=_now())
    return DoctorReport(
        [*findings, Finding("sample", "ok", look.summary()), *look.findings], look, look.toml()
    )


def _described(settings: Settings) -> bool:
    """Whether the settings describe a query. If not, the doctor proposes one."""
    return "query" in settings.model_fields_set


def no_input(settings: Settings, names: Sequence[str]) -> Finding:
    """The finding that there is no input topic. names: those of the topics that exist."""
    if settings.input.topic is None and not _described(settings):
        message = f"no settings name a topic; topics there are: {listed(names)}"
        return Finding("input topic", "warning", message, "`evenflow doctor --topic NAME` looks at one")
    error = missing_input(settings, list(names))
    return Finding("input topic", "problem", error.message, error.hint or "")


def check_offsets(config: Mapping[str, str]) -> Iterator[Finding]:
    """A finding about how long a query may be stopped. config: of a broker.
    No finding if the broker does not tell.
    """
    minutes = config.get(_RETENTION, "")
    if not minutes.isdigit():
        return
    duration = span(int(minutes) * 60_000)
    if int(minutes) < _WEEK:
        message = (
            "the broker deletes the committed offsets of a query whose"
            f" partitioners have been stopped for {duration} "
        )
        message += f"({_RETENTION} = {minutes})"
        do = (
            f"set {_RETENTION} = {_WEEK} or more on the brokers, or never stop all partitioners for that long"
        )
        yield Finding("committed offsets", "warning", message, do)
    else:
        yield Finding(
            "committed offsets", "ok", f"are kept for {duration} after the last partitioner has stopped"
        )


def check_policy(settings: Settings) -> Iterator[Finding]:
    """A finding about the controller's policy and its options.
    No finding if the settings have no section `control`.
    """
    if "control" not in settings.model_fields_set:
        return
    try:
        policy_of(settings)
    except EvenflowError as error:
        yield Finding("policy", "problem", error.message, error.hint or "")
    else:
        yield Finding("policy", "ok", f"'{settings.control.policy}' decides about workers and reducers")


def check_input(settings: Settings, state: TopicState, *, oldest: int | None, now: int) -> Finding:
    """A finding about size and retention of the input topic.

    oldest: least record timestamp of the sample, ms. None if there is no sample. now: ms since 1970.
    """
    name = f"topic {state.name}"
    if settings.input.partitions not in (None, state.partitions):
        error = other_partitions(settings, state)
        return Finding(name, "problem", error.message, error.hint or "")
    size = f"{state.partitions} partitions, {state.records:,} offsets"
    keeps = counts_from_event_time(state)
    if keeps is None:
        return Finding(name, "ok", size)
    retention = f"keeps records for {format_duration(keeps)} counted from their own timestamp"
    mend = f"set retention.ms=-1 (or message.timestamp.type=LogAppendTime) on {state.name}"
    if oldest is not None and now - oldest > keeps:
        age = f"the sample holds records of {span(now - oldest)} ago: the broker deletes such within minutes"
        return Finding(name, "problem", f"{size}; {retention}, and {age}", mend)
    if settings.input.topic is None:
        return Finding(
            name, "problem", f"{size}; {retention}: a replay of older data is deleted within minutes", mend
        )
    note = "what is not read by then is gone; a replay of older data would be deleted within minutes"
    return Finding(name, "ok", f"{size}; {retention}: {note}")


def counts_from_event_time(state: TopicState) -> int | None:
    """How long (ms) a topic keeps records after their own timestamps.

    None if the topic keeps them for ever, or counts from the time when they were appended.
    """
    retention = int(state.config.get("retention.ms", "-1"))
    deletes = "delete" in state.config.get("cleanup.policy", "delete") and retention >= 0
    by_record = state.config.get("message.timestamp.type", "CreateTime") == "CreateTime"
    return retention if deletes and by_record else None


def used_topics(settings: Settings) -> dict[str, TopicSpec]:
    """Role -> topic, for the topics that evenflow makes with these settings.

    Some roles are left out, because not every sink or wiring needs all topics.
    """
    unused = {role for sink in SINKS.values() for role in sink.topics} - sink_of(settings).topics | {"input"}
    if settings.spark.wiring == "fused":
        unused.add("partials")
    known = settings.with_input_partitions(input_topic(settings).partitions)
    return {role: spec for role, spec in pipeline_topics(known).items() if role not in unused}


def check_topics(specs: Mapping[str, TopicSpec], states: Mapping[str, TopicState]) -> Iterator[Finding]:
    """One finding for each topic that evenflow makes: partition count, record limits and retention."""
    for role, spec in specs.items():
        name, state = f"topic {spec.name}", states.get(spec.name)
        if state is None:
            yield Finding(name, "ok", f"not there yet ({role}): the service that needs it makes it")
            continue
        try:
            check_topic(spec, state)
        except EvenflowError as error:
            yield Finding(name, "problem", error.message, error.hint or "")
            continue
        yield _check_retention(role, state)


def _check_retention(role: str, state: TopicState) -> Finding:
    keeps = counts_from_event_time(state)
    if role == "rejected" and keeps is not None:
        message = (
            f"keeps records for {format_duration(keeps)} counted from their own"
            " timestamp: `verify` misses older ones"
        )
        return Finding(f"topic {state.name}", "problem", message, f"set retention.ms=-1 on {state.name}")
    return Finding(f"topic {state.name}", "ok", f"{state.partitions} partitions, {state.records:,} offsets")


def _query_findings(settings: Settings, input_state: TopicState | None) -> Iterator[Finding]:
    """Findings about the topics that evenflow makes for the query and its views,
    and about our rights on them.
    """
    if input_state is not None:
        settings = settings.with_input_partitions(input_state.partitions)
    each = [used_topics(query_settings) for query_settings in queries(settings)]
    # Views share these topics with the query, so they are reported once.
    for specs in each[1:]:
        for role in OF_THE_QUERY & set(specs):
            del specs[role]
    states = describe(settings.kafka, [spec.name for specs in each for spec in specs.values()])
    for specs in each:
        yield from check_topics(specs, states)
    yield from check_durability([*_stateful(each, states), *internal_topics(settings.kafka)])
    refused = [name for name in states if not _writable(settings.kafka, name)]
    if refused:
        do = "ask for the ACL Write on them for this user"
        yield Finding("rights", "warning", f"may not write to {', '.join(sorted(refused))}", do)
    elif states:
        yield Finding("rights", "ok", "may write to every topic of the query that exists")


def _stateful(
    each: Sequence[Mapping[str, TopicSpec]], states: Mapping[str, TopicState]
) -> Iterator[TopicState]:
    """Those of these topics that a query cannot do without. Telemetry and the input are left out."""
    for specs in each:
        for role, spec in specs.items():
            if role not in ("input", "telemetry") and spec.name in states:
                yield states[spec.name]


def _writable(kafka: KafkaSettings, topic: str) -> bool:
    try:
        return may_write(kafka, topic)
    except ServiceError:
        return False


def _hint(error: EvenflowError) -> str:
    """What to do about an error. Many hints send people to `evenflow doctor`, which would be of no use
    here.
    """
    hint = error.hint or ""
    return "is it running? `evenflow broker` starts one here" if "evenflow doctor" in hint else hint


def _now() -> int:
    return int(time.time() * 1000)
