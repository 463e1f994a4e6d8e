"""The Faust side of the service: lifecycle, the agents of plans and of the exchange, the status page.

The data plane is a service of the Faust app with a thread of its own. Each half needs the other. If one of
them dies, the process ends, and a restart brings both back.
Faust has a consumer group of its own, one per instance, so that every instance sees every plan, and all that
the others tell. It begins at the end of the sync topic and of telemetry, because what was told before is out
of date.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, ClassVar

import faust
from aiokafka.errors import KafkaError
from faust.sensors.prometheus import setup_prometheus_sensors
from faust.transport.drivers import aiokafka
from faust.types import TP
from mode import Service
from mode.threads import ServiceThread, WorkerThread

from evenflow.errors import ConfigError
from evenflow.reporting import on_every_line
from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.kafka import aiokafka_config
from monitoring.instruments.partitioner import PartitionerInstruments
from monitoring.live.feed import Feed
from monitoring.web.faust_site import BoundedSite, protect
from monitoring.web.guard import Guard
from monitoring.web.tls import server_context
from partitioner_service.begin.namesake import refuse_live_namesake
from partitioner_service.begin.prepare import prepare
from partitioner_service.begin.rebuild import continue_from_routed
from partitioner_service.exchange.channel import Channel
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.reports.health import Health
from partitioner_service.routing.speeds import MeasuredSpeeds
from partitioner_service.web.listening import listening
from partitioner_service.web.pages import add_pages
from topics.batches.aiokafka_login import TokenProvider, tls_context

log = logging.getLogger(__name__)

_GRACE = 5.0
"""Seconds in which Faust may stop in order."""
_MOMENT = 2.0
"""Seconds in which tasks may react to being cancelled."""
_MOST_TOLD = 8
"""Records of the sync topic, or of telemetry, that wait in Faust. More of them wait in Kafka."""
_TICK = 0.1
"""Seconds between two looks at the time of the open round."""


def serve(
    settings: Settings,
    *,
    until_ended: bool = False,
    from_routed: bool = False,
    trial: bool = True,
    take_over: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run one partitioner instance until SIGTERM or SIGINT.

    With `until_ended`, also stop once the input has ended. With `from_routed`, first find committed offsets
    again that are gone (`rebuild`). trial: as of `prepare`. With `take_over`, end a process that is this
    instance already, instead of being refused because of it.

    Raises ConfigError if the port of the pages is taken or the instance is at work already, and what
    `prepare` refuses, before anything is begun. Later it raises whatever stopped the data plane or the
    control plane.
    """
    on_every_line(query=settings.query.name, part=f"partitioner {settings.partitioner.instance}", epoch=0)
    with closing(listening(settings)) as web, tempfile.TemporaryDirectory(prefix="evenflow-faust-") as folder:
        settings = prepare(settings, trial=trial and not from_routed)
        if not take_over:
            refuse_live_namesake(settings)
        if from_routed:
            continue_from_routed(settings)
        instruments = PartitionerInstruments(settings)
        plane = DataPlane(settings, until_ended=until_ended, clock=clock, onlooker=instruments)
        instruments.watch(plane.status, lambda: plane.newest_telemetry)
        _run(_serve(settings, plane, Path(folder), instruments, web))


def _run(main: Coroutine[Any, Any, None]) -> None:
    """As asyncio.run, but tasks that do not react to being cancelled are left behind after a moment.

    While Faust waits to join its group, it can neither be stopped nor cancelled. A predecessor that was
    killed makes it wait that long. By then the data plane has committed, and nothing else is worth waiting
    for.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_MOMENT))
        asyncio.set_event_loop(None)


def build_app(
    settings: Settings,
    plane: DataPlane,
    folder: Path,
    instruments: PartitionerInstruments,
    feed: Feed,
    *,
    web: socket.socket,
) -> faust.App:
    """The Faust app of this instance. feed: what its live page shows. web: listens where the pages are to be.

    The app stores nothing, but Faust asks for a folder all the same. Raises ConfigError when
    `kafka.extras.faust` names a setting that Faust does not know.
    """
    options = settings.partitioner
    ours: dict[str, Any] = {
        "broker": [f"kafka://{server}" for server in settings.kafka.bootstrap_servers.split(",")],
        "broker_credentials": _credentials(settings.kafka),
        "store": "memory://",
        "datadir": folder,
        "topic_disable_leader": True,  # evenflow makes all topics, so Faust may make none
        "topic_allow_declare": False,
        "web_host": options.web_host,
        "web_bind": options.web_host,
        "web_ssl_context": server_context(settings.web),
        "web_router_enabled": False,  # Faust's own pages: evenflow has no tables, and routes by other rules
        "web_tables_enabled": False,
        "consumer_auto_offset_reset": "earliest",
        # After a kill, the next process of this instance waits so long (s) until it is let into the group.
        "broker_session_timeout": 10.0,
        "broker_heartbeat_interval": 2.0,
        "stream_wait_empty": False,
    }
    extras = settings.kafka.extras.faust
    unknown = sorted(set(extras) - set(faust.App.Settings.SETTINGS))
    if unknown:
        raise ConfigError(f"kafka.extras.faust sets {', '.join(unknown)}, which Faust does not know")
    used = ours | extras | {"web_port": web.getsockname()[1]}
    plane.serves_pages_at(reachable(used["web_host"], used["web_port"]))
    app = faust.App(f"{settings.query.name}.control.{options.instance}", **used)
    # Of Faust's aiohttp driver. Its own site would neither take this socket nor bound its connections.
    driver: Any = app.web
    driver._transport_handlers["tcp"] = lambda: BoundedSite(
        driver._runner, web, most=settings.web.connections, context=app.conf.web_ssl_context
    )
    protect(driver.web_app, Guard(settings.web, str(used["web_host"])))
    app.transport.Consumer = _consumer_of(settings.topic("sync"), settings.topic("telemetry"))  # type: ignore[misc]  # how Faust is given another one
    plans = app.topic(settings.topic("plan"), value_serializer="raw", key_serializer="raw", internal=False)

    @app.agent(plans)
    async def follow_plans(stream: Any) -> None:
        async for event in stream.events():
            plane.offer(event.message.offset, event.value)

    if plane.channel is not None:
        _follow_the_exchange(app, settings.topic("sync"), plane.channel)

    if plane.speeds is not None:
        _follow_telemetry(app, settings.topic("telemetry"), plane.speeds)

    # Faust's own sensors measure the control plane alone. Their page shows the whole registry, the data plane
    # included.
    setup_prometheus_sensors(app, "/metrics/", registry=instruments.registry, name_prefix="faust")
    add_pages(app, settings, plane, Health(plane.clock), feed)
    return app


def _follow_the_exchange(app: faust.App, name: str, channel: Channel) -> None:
    """Hand over all that is told, and look at the time of the open round."""
    # Offsets of this topic are not committed: nobody goes on where they were left.
    sync_topic = app.topic(name, value_serializer="raw", key_serializer="raw", internal=False, acks=False)
    sync_topic.maxsize = _MOST_TOLD

    # Records are large, and to make a table takes a while. So neither is done in the event loop.
    @app.agent(sync_topic)
    async def follow_the_exchange(stream: Any) -> None:
        async for event in stream.events():
            await asyncio.to_thread(channel.offer, event.value)

    @app.timer(interval=_TICK)
    async def end_overdue_rounds() -> None:
        await asyncio.to_thread(channel.tick)


def _follow_telemetry(app: faust.App, name: str, speeds: MeasuredSpeeds) -> None:
    """Hand over what Spark says of its micro-batches."""
    telemetry = app.topic(name, value_serializer="raw", key_serializer="raw", internal=False, acks=False)
    telemetry.maxsize = _MOST_TOLD

    @app.agent(telemetry)
    async def follow_telemetry(stream: Any) -> None:
        async for event in stream.events():
            speeds.offer(event.value)


class DataPlaneService(Service):
    """Holds the data plane's thread. When the thread ends, `done` is set, and `error` holds what ended it."""

    logger = logging.getLogger("mode.data_plane")  # keeps mode's "Starting..." lines out of our own log

    def __init__(self, plane: DataPlane, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plane = plane
        self.done = asyncio.Event()
        self.error: BaseException | None = None
        self._thread: threading.Thread | None = None

    async def on_start(self) -> None:
        """Start the thread."""
        loop = asyncio.get_running_loop()

        def body() -> None:
            # Whatever ends this thread is kept for `_serve`, which raises it in the main thread.
            try:
                self.plane.run()
            except BaseException as error:
                self.error = error
            finally:
                loop.call_soon_threadsafe(self.done.set)

        self._thread = threading.Thread(target=body, name="data-plane")
        self._thread.start()

    async def on_stop(self) -> None:
        """Let the block in hand finish and commit."""
        self.plane.stop()
        await self.done.wait()  # before the join, which would otherwise block the event loop
        if self._thread is not None:
            self._thread.join()


async def _serve(
    settings: Settings,
    plane: DataPlane,
    folder: Path,
    instruments: PartitionerInstruments,
    web: socket.socket,
) -> None:
    stop, leave = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    # Before anything is open that a signal could interrupt half-way.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    feed = Feed(settings)
    app = build_app(settings, plane, folder, instruments, feed, web=web)
    app.finalize()
    data = DataPlaneService(plane, loop=loop)
    await data.start()
    ended = [asyncio.ensure_future(event.wait()) for event in (stop, data.done)]
    control = asyncio.ensure_future(_control(app, leave))
    try:
        await asyncio.wait([*ended, control], return_when=asyncio.FIRST_COMPLETED)
        if control.done() and control.exception() is not None and data.error is None:
            raise control.exception()  # type: ignore[misc]  # not None, but mypy forgets that between two calls
    finally:
        await data.stop()
        leave.set()
        for task in ended:
            task.cancel()
        # Faust is asked to leave, not cancelled. Cancelled in mid-start, it would leave its consumer's thread
        # behind.
        await asyncio.wait([control], timeout=_GRACE)
        if not control.done():
            log.warning("Faust has not stopped within %g s; leaving it", _GRACE)
            control.cancel()
        feed.close()
    if data.error is not None:
        raise data.error


async def _control(app: faust.App, leave: asyncio.Event) -> None:
    try:
        await app.start()
        scheme = "http" if app.conf.web_ssl_context is None else "https"
        log.info("status page: %s://%s:%s/", scheme, app.conf.web_host, app.conf.web_port)
        while not leave.is_set() and not app.should_stop:  # `should_stop` is also true after a crash
            await asyncio.sleep(0.1)
        if app.crashed:
            raise app.crash_reason or RuntimeError("Faust's control plane crashed")
    finally:
        await app.stop()


class _ControlThread(WorkerThread):
    """Faust's consumer thread, as a daemon: nothing that it does may keep a stopped process alive."""

    def __init__(self, service: ServiceThread, **kwargs: Any) -> None:
        super().__init__(service, **kwargs)
        self.daemon = True

    def stop(self) -> None:
        """Wait a moment for the thread. mode calls this within the event loop, and would wait without
        limit.
        """
        if self.is_stopped.wait(_MOMENT):
            self.join(_MOMENT)


# Set on mode's own class, so this holds for every service thread that Faust makes in this process.
ServiceThread.Worker = _ControlThread


# The classes below log under a child of Faust's own logger. Without a logger of their own, mode would give
# them one of this module's name, and Faust's "Starting..." would look like a line of ours.
_FAUST = logging.getLogger(f"{aiokafka.__name__}.ours")


class _Reader(aiokafka.AIOKafkaConsumerThread):
    """Faust's consumer.

    It reads committed records only, so a plan of an aborted transaction does not count. It begins
    `newest_only` at its end.
    """

    logger = _FAUST
    newest_only: ClassVar[frozenset[str]]
    """Names of topics."""

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """As Faust does it, but to the end of `newest_only`."""
        offsets = dict(await super().seek_to_committed())
        newest = [tp for tp in offsets if tp.topic in self.newest_only]
        if newest:
            await self.call_thread(self._seek_to_end, newest)
        return {tp: offset for tp, offset in offsets.items() if tp not in newest}

    async def _seek_to_end(self, partitions: list[TP]) -> None:
        consumer = self._ensure_consumer()
        try:
            for tp, offset in (await consumer.end_offsets(partitions)).items():
                consumer.seek(tp, offset)
        except KafkaError as error:  # the topic is gone: old records would only be passed over one by one
            _FAUST.debug("no end of %s: %s", partitions, error)

    def _create_worker_consumer(self, transport: Any) -> Any:
        # Faust looks only at this flag when it chooses the isolation level. The flag must not stay true:
        # Faust would then begin transactions itself.
        self.consumer.in_transaction = True
        try:
            return super()._create_worker_consumer(transport)
        finally:
            self.consumer.in_transaction = False


class _Consumer(aiokafka.Consumer):
    logger = _FAUST

    reader: ClassVar[type[_Reader]]

    def _new_consumer_thread(self) -> _Reader:
        return self.reader(self, loop=self.loop, beacon=self.beacon)


def _consumer_of(*newest_only: str) -> type[_Consumer]:
    """Faust's consumer, for an app that begins at the end of these topics."""
    reader = type("_Reader", (_Reader,), {"newest_only": frozenset(newest_only)})
    return type("_Consumer", (_Consumer,), {"reader": reader})


def _credentials(kafka: KafkaSettings) -> Any:
    words, context = aiokafka_config(kafka), tls_context(kafka)
    if words["tokens"] is not None:
        return faust.OAuthCredentials(oauth_cb=TokenProvider(words["tokens"]), ssl_context=context)
    if words["security_protocol"].startswith("SASL_"):
        return faust.SASLCredentials(
            username=words["sasl_plain_username"],
            password=words["sasl_plain_password"],
            mechanism=words["sasl_mechanism"],
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)


def reachable(host: str, port: int) -> str:
    """Where others find the pages that are served at this address, as `host:port`.

    A service that listens on all addresses is found at that of this machine's name: in a pod and in a
    container that is the address in their network.
    """
    if host in ("0.0.0.0", "::", ""):
        host = socket.gethostname()
        with suppress(OSError):  # a machine whose name nothing resolves is told by its name
            host = socket.gethostbyname(host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
