"""The Spark application: checks, starts the streaming queries of its stages, waits, stops between batches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from evenflow.due_windows import ResultDelays
from evenflow.errors import ConfigError, DataLossError, EvenflowError, FencedError, ServiceError
from evenflow.host.stopping import stopped_by_signals
from evenflow.reporting import Trouble, on_every_line, unanswered
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole, queries
from evenflow.telemetry import Stage
from evenflow.twostep import Tally
from monitoring.instruments.spark import SparkInstruments
from monitoring.serving import served
from spark_consumers.checkpoints.epoch import own_topic
from spark_consumers.checkpoints.notes import (
    refuse_changed_notes,
    refuse_other_wiring,
    wait_for_room,
)
from spark_consumers.cluster.executors import Executors, ExecutorWatch
from spark_consumers.cluster.forwarding import warn_of_travel
from spark_consumers.cluster.machines import refuse_unshared
from spark_consumers.cluster.manager import SparkCluster
from spark_consumers.cluster.warm_up import warm_up
from spark_consumers.reports.batch_limits import BatchLimits
from spark_consumers.reports.health import Health
from spark_consumers.reports.java_log import JavaLog
from spark_consumers.reports.listener import ProgressObserver, Telemetry
from spark_consumers.reports.log_lines import LogLines
from spark_consumers.reports.results_watch import ResultsWatch
from spark_consumers.reports.upstream import unread
from spark_consumers.session import end_session, java_status, make_session, session_conf
from spark_consumers.sinks import sink_of
from spark_consumers.stage import RunningStage
from spark_consumers.workers.tallies import Tallies
from topics.admin import ensure_topics, pipeline_topics, refuse_unwritable
from topics.query.input_topic import admitted
from topics.query.plan_topic import PlanFollower
from topics.state import TopicState
from topics.watch import TopicWatch

_LOG = logging.getLogger("evenflow.spark")
_LOOK_SECONDS = 0.25


def run(
    settings: Settings,
    stages: Sequence[str] = ("combine", "reduce"),
    *,
    stop_event: threading.Event | None = None,
    until_ended: bool = False,
    log: JavaLog | None = None,
) -> None:
    """Run these stages until `stop_event`, SIGTERM or SIGINT,
    or (`until_ended`) until all windows are emitted.

    A stop waits for the running micro-batch. Raises an EvenflowError when a query fails or is refused.
    log: where Java prints to. None means that Java prints where this process does.
    """
    chosen = _stages(settings, stages)
    on_every_line(query=settings.query.name, part=f"spark {' '.join(chosen)}", epoch=0)
    # Whatever settings alone can get wrong is refused here, before any wait for a broker or for Java.
    session_conf(settings, chosen)
    for query_settings in queries(settings):
        sink_of(query_settings)
    refuse_unshared(settings)
    _LOG.info("checkpoint: %s", settings.query_checkpoint)
    wait_for_room(settings)
    settings = admitted(settings)
    run_queries = queries(settings)
    if chosen != ("combine",):
        for query_settings in run_queries:
            sink_of(query_settings).reach(query_settings)
    for query_settings in run_queries:
        refuse_changed_notes(query_settings, chosen)
    topics = {query_settings.query.name: _topics(query_settings, chosen) for query_settings in run_queries}
    stop = stop_event or threading.Event()
    watch = TopicWatch(settings.kafka, _watched(topics.values()))
    talks = [
        LogLines(query_settings, partial(unread, query_settings), unanswered=lambda: watch.unanswered)
        for query_settings in run_queries
    ]
    _warn_of_waits(settings)
    warn_of_travel(settings)
    instruments = SparkInstruments(settings, chosen)
    health = Health(
        kafka=lambda: _kafka_trouble(watch),
        delays={
            query_settings.query.name: ResultDelays.of(query_settings.query) for query_settings in run_queries
        },
    )
    host, port = settings.spark.web_host, settings.spark.web_port
    with (
        served(instruments, host, port, setting="spark.web_port", health=health.checks, web=settings.web),
        _session(settings, log, chosen) as spark,
        # After the session: this replaces pyspark's own handler, which would cancel running jobs.
        stopped_by_signals(stop),
        _telemetry(spark, settings, chosen, talks, (instruments, health), watch=watch) as telemetries,
    ):
        for query_settings in run_queries:
            refuse_other_wiring(spark, query_settings, chosen)
        running: list[RunningStage] = []
        looks: list[Callable[[], object]] = [health.loop.turned]
        try:
            with _last_words(telemetries):
                for query_settings, telemetry in zip(run_queries, telemetries, strict=True):
                    mine = topics[query_settings.query.name]
                    runs: dict[Stage, Callable[[], bool]] = {}
                    for stage in chosen:
                        running.append(
                            RunningStage(spark, query_settings, stage, mine, tally=telemetry.tally)
                        )
                        runs[stage] = running[-1].runs
                    looks.append(partial(telemetry.look, runs))
                _LOG.info("running: %s", ", ".join(stages) + _of_views(settings))
                looks += [watch.check, *(talk.look for talk in talks), *(stage.look for stage in running)]
                if chosen != ("combine",):  # whose rows go into a topic
                    looks += [ResultsWatch(query_settings).look for query_settings in run_queries]
                _wait(running, stop, until_ended, looks)
        finally:
            _finish(running, watch)
            for talk in talks:
                talk.look(last=True)
        with _last_words(telemetries):
            for started in running:
                started.raise_failure(ask=_kafka_trouble(watch) is None)
        _LOG.info("stopped between two micro-batches: started again, it goes on from there")


@contextmanager
def _last_words(telemetries: Sequence[Telemetry]) -> Iterator[None]:
    """If the application fails within, its stages say so at once. Their micro-batches may take long to end.

    A driver that another one has replaced says nothing, because the stages go on.
    """
    try:
        yield
    except FencedError:
        raise
    except EvenflowError as error:
        for telemetry in telemetries:
            telemetry.last_word(error.message)
        raise


def _finish(running: Sequence[RunningStage], watch: TopicWatch) -> None:
    """End all stages at the same time. One after the other, each would wait for a micro-batch of its own.

    While Kafka does not answer, no micro-batch can end, and none is waited for.
    """
    with ThreadPoolExecutor(max(1, len(running))) as pool:
        left = {
            pool.submit(stage.finish, in_vain=lambda: _kafka_trouble(watch) is not None) for stage in running
        }
        while left:
            ended, left = wait(left, timeout=_LOOK_SECONDS)
            with suppress(DataLossError):  # it ends anyway
                watch.check()
            for future in ended:
                future.result()


def _kafka_trouble(watch: TopicWatch) -> Trouble | None:
    """What is wrong if Kafka does not answer."""
    return unanswered(watch.servers, watch.unanswered)


def _stages(settings: Settings, stages: Sequence[str]) -> tuple[Stage, ...]:
    stage_names = set(stages)
    if not stage_names or not stage_names <= {"combine", "reduce"}:
        raise ConfigError(f"stages are combine and reduce, not {', '.join(stages) or 'none'}")
    if settings.spark.wiring == "fused":
        if len(stage_names) == 1:
            raise ConfigError(
                f"spark.wiring is 'fused': there is no {stages[0]} stage of its own",
                hint="run `evenflow aggregate`, or set spark.wiring = 'split' (under a new query name)",
            )
        return ("fused",)
    ordered: tuple[Stage, ...] = ("combine", "reduce")
    return tuple(stage for stage in ordered if stage in stage_names)


def _topics(settings: Settings, stages: tuple[Stage, ...]) -> dict[str, TopicState]:
    """Create or check the topics of these stages: role -> state.

    Raises ServiceError if the user has no right to write one of the topics that these stages write.
    """
    specs = pipeline_topics(settings)
    written: list[TopicRole] = ["telemetry"]
    if "combine" in stages:
        written.append("partials")
    if stages != ("combine",):
        written += sorted(sink_of(settings).topics)
    written += sorted({own_topic(stage) for stage in stages})
    roles: list[TopicRole] = ["routed", "snapshots", *written]
    if stages != ("fused",) and "partials" not in written:
        roles.append("partials")
    states = ensure_topics(settings.kafka, [specs[role] for role in roles])
    for role in written:
        refuse_unwritable(settings.kafka, specs[role].name, role)
    return {role: states[specs[role].name] for role in roles}


def _watched(topics: Iterable[Mapping[str, TopicState]]) -> list[TopicState]:
    """The topics whose loss must be noticed, each once: views read the same routed topic as their query."""
    each = {state.name: state for mine in topics for role, state in mine.items() if role != "telemetry"}
    return list(each.values())


def _of_views(settings: Settings) -> str:
    names = [*settings.query.views, *settings.query.summaries]
    noun = "views and summaries" if settings.query.summaries else "views"
    return f", of the query and of {len(names)} {noun} ({', '.join(names)})" if names else ""


def _warn_of_waits(settings: Settings) -> None:
    if settings.spark.combine_wait:
        _LOG.warning(
            "spark.combine_wait is %s: the combiner waits so many microseconds for each tuple."
            " It is for experiments only",
            settings.spark.combine_wait,
        )


def _wait(
    running: list[RunningStage],
    stop: threading.Event,
    until_ended: bool,
    looks: Sequence[Callable[[], object]],
) -> None:
    """Wait until told to stop, until a stage stops by itself, or (`until_ended`) until every stage is over.

    Stages are asked in order, and a stage that is over is not asked again. The order is safe because the
    reducer is over only after the combiner, and because views read what their query reads.
    """
    left = list(running)
    while not stop.wait(_LOOK_SECONDS):
        for look in looks:
            look()
        if any(stage.failed for stage in running):
            return
        while until_ended and left and left[0].over():
            left.pop(0)
        if not left:
            return


@contextmanager
def _session(settings: Settings, log: JavaLog | None, stages: tuple[Stage, ...]) -> Iterator[SparkSession]:
    spark = None
    try:
        spark = make_session(settings, log, stages)
        yield spark
    except Exception as error:
        # Every call of Java fails then, each in its own way, and none says why. An error that has a name says
        # more.
        has_name = isinstance(error, EvenflowError) and not isinstance(error, ServiceError)
        if not has_name and (status := java_status(after=error)) is not None:
            raise _java_is_gone(status, log) from None
        raise
    finally:
        if spark is not None:
            end_session(spark)


def _java_is_gone(status: int, log: JavaLog | None) -> ServiceError:
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    where = "above" if log is None else f"in {log.path}"
    return ServiceError(
        f"Spark's Java process ended {how}",
        hint=(
            f"a kernel that is short of memory ends it by signal 9: see `dmesg`, and what Java said {where}."
            " Started again, the application goes on from its last commit"
        ),
    )


@contextmanager
def _telemetry(
    spark: SparkSession,
    settings: Settings,
    stages: tuple[Stage, ...],
    talks: Sequence[LogLines],
    onlookers: Sequence[ProgressObserver],
    *,
    watch: TopicWatch,
) -> Iterator[list[Telemetry]]:
    """Telemetry of the query and of each view.

    While the context is open, it is published and executors follow plans.
    """
    local = settings.spark.in_one_process
    cores = spark.sparkContext.defaultParallelism
    # Executors and listeners need each other.
    # So both get a lambda, which looks the other one up only when called.
    executors = Executors(
        settings,
        stages,
        None if local else SparkCluster(spark),
        follow=partial(PlanFollower, settings),
        reached=lambda: _reached(listeners),
        slots=cores if local else None,
        warm=partial(warm_up, spark.sparkContext),
    )
    listeners = [
        Telemetry(
            query_settings,
            stages,
            spark.sparkContext.accumulator(Tally(), Tallies()),
            talk,
            lambda: executors.standing,
            onlookers,
            limits={stage: BatchLimits.of(query_settings, stage, cores=cores) for stage in stages},
        )
        for query_settings, talk in zip(queries(settings), talks, strict=True)
    ]
    following = ExecutorWatch(executors)
    streams: Any = spark.streams  # Any: a Telemetry has only the part of a listener that the JVM calls
    for listener in listeners:
        streams.addListener(listener)
    try:
        yield listeners
    finally:
        for listener in listeners:
            streams.removeListener(listener)
            listener.close(patience=5.0 if _kafka_trouble(watch) is None else 0.5)
        following.close()


def _reached(listeners: Sequence[Telemetry]) -> int | None:
    """Event time (ms) up to which every listener's query has worked off everything.

    None until each has begun.
    """
    reached = [listener.reached() for listener in listeners]
    known = [time for time in reached if time is not None]
    return min(known) if len(known) == len(reached) else None
