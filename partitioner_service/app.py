"""The Faust side of the service: lifecycle, the plan agent, the status page.

The data plane is a service of the Faust app with a thread of its own. Either half dying ends the
process (pipeline rule 12): a data plane without control, or control over nothing, helps nobody.
Faust's consumer group is its own, one per instance, so that every instance sees every plan.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import faust
from faust.sensors.prometheus import setup_prometheus_sensors
from faust.transport.drivers import aiokafka
from mode import Service
from mode.threads import ServiceThread, WorkerThread

from evenflow.errors import ConfigError
from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.kafka import aiokafka_config
from evenflow.talking import on_every_line
from monitoring.instruments.partitioner import PartitionerInstruments
from monitoring.live.feed import Feed
from partitioner_service.health import Health
from partitioner_service.pages import add_pages
from partitioner_service.plane import DataPlane
from partitioner_service.prepare import prepare

log = logging.getLogger(__name__)

_GRACE = 5.0
_MOMENT = 2.0


def serve(
    settings: Settings, *, until_ended: bool = False, clock: Callable[[], float] = time.monotonic
) -> None:
    """Run one partitioner instance until SIGTERM or SIGINT (or, `until_ended`, until its input has ended).

    Raises whatever stopped the data plane or the control plane, and before anything else what `prepare` refuses.
    """
    on_every_line(query=settings.query.name, part=f"partitioner {settings.partitioner.instance}", epoch=0)
    settings = prepare(settings)
    instruments = PartitionerInstruments(settings)
    plane = DataPlane(settings, until_ended=until_ended, clock=clock, onlooker=instruments)
    instruments.watch(plane.status, lambda: plane.told)
    with tempfile.TemporaryDirectory(prefix="evenflow-faust-") as folder:
        _run(_serve(settings, plane, Path(folder), instruments))


def _run(main: Coroutine[Any, Any, None]) -> None:
    """As asyncio.run, but what does not let itself be cancelled is left behind after a moment.

    A Faust that waits to join its group (a killed predecessor holds that up) can neither be stopped nor cancelled.
    By then the data plane has committed, and nothing else is worth waiting for.
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
    settings: Settings, plane: DataPlane, folder: Path, instruments: PartitionerInstruments, feed: Feed
) -> faust.App:
    """The Faust app of this instance. It keeps nothing, but wants a folder. feed: what its live page shows."""
    options = settings.partitioner
    ours: dict[str, Any] = {
        "broker": [f"kafka://{server}" for server in settings.kafka.bootstrap_servers.split(",")],
        "broker_credentials": _credentials(settings.kafka),
        "store": "memory://",
        "datadir": folder,
        "topic_disable_leader": True,
        "topic_allow_declare": False,
        "web_host": options.web_host,
        "web_bind": options.web_host,
        "web_port": options.web_port or _free_port(options.web_host),
        "consumer_auto_offset_reset": "earliest",
        "broker_session_timeout": 10.0,
        "broker_heartbeat_interval": 2.0,
        "stream_wait_empty": False,
    }
    extras = settings.kafka.extras.faust
    unknown = sorted(set(extras) - set(faust.App.Settings.SETTINGS))
    if unknown:
        raise ConfigError(f"kafka.extras.faust sets {', '.join(unknown)}, which Faust does not know")
    app = faust.App(f"{settings.query.name}.control.{options.instance}", **(ours | extras))
    app.transport.Consumer = _Consumer  # type: ignore[misc]  # how Faust is given another one
    plans = app.topic(settings.topic("plan"), value_serializer="raw", key_serializer="raw", internal=False)

    @app.agent(plans)
    async def follow_plans(stream: Any) -> None:
        async for event in stream.events():
            plane.offer(event.message.offset, event.value)

    # Faust's own sensors: of the control plane alone. Its page shows all that is in the registry.
    setup_prometheus_sensors(app, "/metrics/", registry=instruments.registry, name_prefix="faust")
    add_pages(app, settings, plane, Health(plane.clock), feed)
    return app


class DataPlaneService(Service):
    """Holds the data plane's thread. Crashes with it."""

    logger = logging.getLogger("mode.data_plane")  # its "Starting..." is not what a person reads our log for

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
        await self.done.wait()
        if self._thread is not None:
            self._thread.join()


async def _serve(
    settings: Settings, plane: DataPlane, folder: Path, instruments: PartitionerInstruments
) -> None:
    stop, leave = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):  # before there is anything that a signal could tear
        loop.add_signal_handler(number, stop.set)
    feed = Feed(settings)
    app = build_app(settings, plane, folder, instruments, feed)
    app.finalize()
    data = DataPlaneService(plane, loop=loop)
    await data.start()
    ended = [asyncio.ensure_future(event.wait()) for event in (stop, data.done)]
    control = asyncio.ensure_future(_control(app, leave))
    try:
        await asyncio.wait([*ended, control], return_when=asyncio.FIRST_COMPLETED)
        if control.done() and control.exception() is not None and data.error is None:
            raise control.exception()  # type: ignore[misc]
    finally:
        await data.stop()
        leave.set()
        for task in ended:
            task.cancel()
        # Asked to leave, not cancelled: a Faust that is torn off in mid-start leaves its consumer's thread behind.
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
        log.info("status page: http://%s:%s/", app.conf.web_host, app.conf.web_port)
        while not leave.is_set() and not app.should_stop:  # a crash ends this too
            await asyncio.sleep(0.1)
        if app.crashed:
            raise app.crash_reason or RuntimeError("Faust's control plane crashed")
    finally:
        await app.stop()


class _ControlThread(WorkerThread):
    """Faust's consumer thread. Nothing that it does may keep a stopped process alive."""

    def __init__(self, service: ServiceThread, **kwargs: Any) -> None:
        super().__init__(service, **kwargs)
        self.daemon = True


ServiceThread.Worker = _ControlThread


# Its "Starting..." is Faust's own. A logger that mode has made itself it would replace by one of this module's name.
_FAUST = logging.getLogger(f"{aiokafka.__name__}.ours")


class _Reader(aiokafka.AIOKafkaConsumerThread):
    """Faust's consumer, read committed: a plan of an aborted transaction is none."""

    logger = _FAUST

    def _create_worker_consumer(self, transport: Any) -> Any:
        # All that Faust asks when it chooses the isolation level; true anywhere else, it would begin transactions itself.
        self.consumer.in_transaction = True
        try:
            return super()._create_worker_consumer(transport)
        finally:
            self.consumer.in_transaction = False


class _Consumer(aiokafka.Consumer):
    logger = _FAUST

    def _new_consumer_thread(self) -> _Reader:
        return _Reader(self, loop=self.loop, beacon=self.beacon)


def _credentials(kafka: KafkaSettings) -> Any:
    words = aiokafka_config(kafka)
    context = None
    if "SSL" in words["security_protocol"].split("_"):
        context = ssl.create_default_context(cafile=words["ssl_cafile"])
        if words["ssl_certfile"]:
            context.load_cert_chain(words["ssl_certfile"], words["ssl_keyfile"], words["ssl_password"])
    if words["security_protocol"].startswith("SASL_"):
        return faust.SASLCredentials(
            username=words["sasl_plain_username"],
            password=words["sasl_plain_password"],
            mechanism=words["sasl_mechanism"],
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)


def _free_port(host: str) -> int:
    try:
        with socket.socket() as probe:
            probe.bind((host, 0))
            return int(probe.getsockname()[1])
    except OSError as error:
        raise ConfigError(f"partitioner.web_host {host!r} cannot be listened on: {error}") from None
