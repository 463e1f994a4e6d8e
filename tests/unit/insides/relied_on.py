"""Parts of Faust, mode, aiohttp, pyspark, confluent-kafka, httpx2 and librdkafka that have no promise to
stay, and that evenflow relies on all the same.

`python -m tests.unit.insides.relied_on` prints the rows of docs/insides.md as the installed packages have
them.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

RELIED_ON: Mapping[str, str] = {
    "faust.transport.drivers.aiokafka:AIOKafkaConsumerThread._create_worker_consumer": (
        "it chooses the isolation level by `consumer.in_transaction`, which we set for the length of this"
        " call"
    ),
    "faust.transport.drivers.aiokafka:AIOKafkaConsumerThread.seek_to_committed": (
        "where an assigned partition begins; ours begins sync and telemetry at their end"
    ),
    "faust.transport.drivers.aiokafka:AIOKafkaConsumerThread._ensure_consumer": (
        "gives aiokafka's consumer, and raises `ConsumerNotStarted` before there is one"
    ),
    "faust.transport.drivers.aiokafka:AIOKafkaConsumerThread.call_thread": (
        "runs a coroutine in the consumer's thread"
    ),
    "faust.transport.drivers.aiokafka:Consumer._new_consumer_thread": (
        "the only place that makes the consumer's thread"
    ),
    "faust.transport.consumer:ConsumerThread": "the base of that thread, as it is driven by Faust",
    "aiokafka:AIOKafkaConsumer.end_offsets": "the ends of logs, by partition, without a change of positions",
    "aiokafka.client:AIOKafkaClient.send": "sends a request to a broker in the newest version that both know",
    "aiokafka.client:AIOKafkaClient.ready": "says whether there is a connection to a broker, and makes one",
    "aiokafka.client:AIOKafkaClient.set_topics": (
        "gives a future that is done once the topic's leaders are known"
    ),
    "aiokafka.protocol.fetch:FetchRequest": (
        "asks for batches; what is stable and what was aborted stands in the answer before the batches, which"
        " come last"
    ),
    "aiokafka.record.util:calc_crc32c_py": (
        "the checksum of a batch; what is imported is this or the same in C"
    ),
    "mode.threads:ServiceThread.start": (
        "makes the thread as `ServiceThread.Worker`, which we replace by a daemon"
    ),
    "mode.threads:WorkerThread.stop": "replaced: it would wait within the event loop without a limit",
    "faust.web.drivers.aiohttp:Web.__init__": (
        "makes `web_app`, `_runner` and `_transport_handlers` before the app starts"
    ),
    "faust.web.drivers.aiohttp:Web.start_server": (
        "sets the runner up before it asks the handler of `tcp` for a site"
    ),
    "faust.web.drivers.aiohttp:Web._new_transport": "takes the site from `_transport_handlers`",
    "faust.web.base:Web._enabled_blueprints": (
        "leaves `/router/` and `/table/` out by the settings `web_*_enabled`"
    ),
    "faust.web.views:View.get_methods": "gives each page only the methods that it has",
    "faust.sensors.prometheus:setup_prometheus_sensors": "adds `/metrics/` and its sensors to our registry",
    "aiohttp.web_runner:BaseSite.start": (
        "registers the site; what `SockSite.start` does beyond is ours (the bound)"
    ),
    "aiohttp.web_runner:SockSite.start": (
        "what our site does in its place must stay the same, apart from the bound"
    ),
    "aiohttp.web_server:Server.connections": "the open connections, the oldest first",
    "aiohttp.web_protocol:RequestHandler.force_close": "closes a connection at once",
    "pyspark.util:local_connect_and_auth": (
        "how a Python process of Spark's connects to Java; `early_answer.py` does the same before it imports"
        " pyspark"
    ),
    "pyspark.sql.streaming.transform_with_state_driver_worker:main": (
        "its module, run as a program, connects first, with the port and secret of the environment"
    ),
    "confluent_kafka.schema_registry._sync.schema_registry_client:SchemaRegistryClient.__init__": (
        "the client of a registry has its HTTP client in `_rest_client`"
    ),
    "confluent_kafka.schema_registry._sync.schema_registry_client:_RestClient.__init__": (
        "makes `session` from `verify`, `auth`, `proxy` and `timeout`; ours, made from the same, takes its"
        " place"
    ),
    "confluent_kafka.schema_registry._sync.schema_registry_client:_RestClient.send_http_request": (
        "asks by `session.request` alone, and passes on what that raises"
    ),
    "httpx2:Client.__init__": ("makes all transports, that of each proxy too, as `_transport` and `_mounts`"),
    "httpx2:Client.request": "sends by `send`, in which ours reads the answer",
    "httpx2:HTTPTransport.__init__": "makes the pool of connections as `_pool`",
    "httpcore2:ConnectionPool.create_connection": (
        "gives each connection the pool's `_network_backend`, which makes and reads sockets; ours ends them"
        " at the deadline"
    ),
    "httpcore2:HTTPProxy.create_connection": "does the same for a proxy",
    "httpcore2._backends.sync:SyncStream": "what a connection does with its socket, each time with a timeout",
}
"""`module:name` -> what of it we rely on."""

OF_LIBRDKAFKA: Mapping[str, str] = {
    "confluent_kafka.Consumer": (
        "the handle of its client is the first field behind the header of the Python object"
    ),
    "rd_kafka_message_t": ("error, partition, value, key and offset stand where the public header has them"),
    "rd_kafka_vu_t": "an argument of a call has nine words: what it is, and room for its content",
    "rd_kafka_produceva": (
        "copies key and value before it returns (flag 2), and returns an error for a record that it does not"
        " take, also for a full queue"
    ),
    "rd_kafka_queue_poll": (
        "gives failures of records (1), lines of the log (4) and errors (8) as events; with"
        " `delivery.report.only.error` no record that was delivered"
    ),
    "rd_kafka_flush": "reads no event by itself where failures of records are events",
    "rd_kafka_outq_len": "counts a record until it is delivered, or until its failure was read",
    "rd_kafka_queue_forward": (
        "moves what a queue holds to another queue; a queue that was forwarded to none keeps what comes to"
        " it, whatever is assigned"
    ),
    "rd_kafka_queue_destroy": "throws away what a queue of the application's holds",
    "rd_kafka_consume_batch_queue": "serves ends of logs, errors, pauses and seeks as `consume` does",
}
"""Part of librdkafka, or of confluent-kafka around it -> what of it we rely on. They are compiled, so the
tests beside those that use them stand for a fingerprint.
"""


def fingerprint(place: str) -> str:
    """12 hex digits over the source of this part. Raises AttributeError or ImportError if it is gone."""
    module, _, path = place.partition(":")
    part: Any = importlib.import_module(module)
    for name in path.split("."):
        part = inspect.getattr_static(part, name)
    part = part.fget if isinstance(part, property) else part
    return hashlib.sha256(textwrap.dedent(inspect.getsource(part)).encode()).hexdigest()[:12]


def rows() -> list[str]:
    """The rows of the page."""
    return [f"| `{place}` | {why} | `{fingerprint(place)}` |" for place, why in RELIED_ON.items()]


def rows_of_librdkafka() -> list[str]:
    """The rows of the page's second table."""
    return [f"| `{part}` | {why} |" for part, why in OF_LIBRDKAFKA.items()]


if __name__ == "__main__":
    print("\n".join([*rows(), "", *rows_of_librdkafka()]))
