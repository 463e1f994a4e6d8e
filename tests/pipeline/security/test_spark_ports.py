"""Who has not the application's secret gets nothing from the ports of Spark's driver and executors.

A driver with one executor stands still. A stranger speaks to it in two ways. It asks each port for blocks, as
an executor does, and it starts an executor of its own by the command of the real one, which every user of
the machine can read. Either way has its counterpart, which succeeds: without `spark.authenticate`, or with
the secret.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.patience import PATIENCE, wait_for
from workbench.local.processes import ChildProcess

pytestmark = [pytest.mark.pipeline, pytest.mark.more]

SECRET = "_SPARK_AUTH_SECRET"
"""The variable by which a worker hands the secret to its executors."""
DRIVER = """
import json, sys
from evenflow.settings import Settings
from spark_consumers.session import end_session, make_session

settings = Settings(
    query={"name": "q", "window": "1s", "key": "k", "time": "t", "aggregates": {"n": "count"}},
    input={"topic": "in", "partitions": 1},
    spark={"master": "local-cluster[1,1,1024]", "conf": json.loads(sys.argv[1])},
)
session = make_session(settings)
try:
    context = session.sparkContext
    kept = context.parallelize(["canary"], 1).cache()
    assert kept.count() == 1
    as_java = context._jvm.scala.jdk.javaapi.CollectionConverters.asJava
    for _ in sys.stdin:
        places = list(as_java(context._jsc.sc().getExecutorMemoryStatus()).keySet())
        found = {
            "blocks": sorted(int(place.rpartition(":")[2]) for place in places),
            "driver": int(context.getConf().get("spark.driver.port")),
            "application": context.applicationId,
            "block": f"rdd_{kept.id()}_0",
        }
        print("FOUND", json.dumps(found), flush=True)
finally:
    end_session(session)
"""
OPEN_BLOCKS, RPC_REQUEST, RPC_ANSWER, CHUNK_REQUEST, CHUNK = 0, 3, 4, 0, 1
"""Types of messages of Spark's network-common and network-shuffle."""


class Application:
    """A driver that stands still, and what it says of itself when it is asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def found(self) -> dict[str, Any]:
        """blocks: the ports of its block managers. driver: its port for messages. application: its id. block:
        the name of a block that an executor holds.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("FOUND "):
                return dict(json.loads(line.removeprefix("FOUND ")))
        raise AssertionError("the driver has ended")

    def executor(self) -> psutil.Process:
        """The executor's Java."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        return next(one for one in below if any("CoarseGrainedExecutorBackend" in w for w in one.cmdline()))


@contextmanager
def application(conf: Mapping[str, str]) -> Iterator[Application]:
    """A driver with one executor and these settings of Spark."""
    words = [sys.executable, "-c", DRIVER, json.dumps(conf)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        try:
            yield Application(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60 * PATIENCE)


def stolen(port: int, application: str, block: str) -> bytes:
    """What this port gives of a block to somebody who says nothing of a secret. Empty if it gives nothing."""
    words = b"".join(struct.pack(">i", len(word)) + word for word in (application.encode(), b"0"))
    names = struct.pack(">ii", 1, len(block)) + block.encode()
    asking = bytes([OPEN_BLOCKS]) + words + names
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(_frame(RPC_REQUEST, struct.pack(">qi", 7, len(asking)), asking))
            kind, answer = _answer(connection)
            if kind != RPC_ANSWER:
                return b""
            # After the number of the question and a length: the type of a StreamHandle, and the stream.
            stream = answer[8 + 4 + 1 : 8 + 4 + 1 + 8]
            connection.sendall(_frame(CHUNK_REQUEST, stream + struct.pack(">i", 0), b""))
            kind, answer = _answer(connection)
            return answer if kind == CHUNK else b""
        except (ConnectionError, TimeoutError):
            return b""


def _frame(kind: int, head: bytes, body: bytes) -> bytes:
    return struct.pack(">qB", 8 + 1 + len(head) + len(body), kind) + head + body


def _answer(connection: socket.socket) -> tuple[int, bytes]:
    """Type and rest of the next message. ConnectionError if the other side ends the connection."""
    length, kind = struct.unpack(">qB", _exactly(connection, 9))
    return kind, _exactly(connection, length - 9)


def _exactly(connection: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        piece = connection.recv(size - len(read))
        if not piece:
            raise ConnectionError
        read += piece
    return read


def test_no_port_gives_a_block_to_who_has_not_the_secret() -> None:
    with application({"spark.rdd.compress": "false"}) as protected:
        result = protected.found()
        for port in (*result["blocks"], result["driver"]):
            assert stolen(port, result["application"], result["block"]) == b""
    with application({"spark.rdd.compress": "false", "spark.authenticate": "false"}) as open_to_all:
        result = open_to_all.found()
        assert any(
            b"canary" in stolen(port, result["application"], result["block"]) for port in result["blocks"]
        )


def test_an_executor_without_the_secret_cannot_log_in_and_one_with_it_can(tmp_path: Path) -> None:
    with application({}) as protected:
        before = protected.found()["blocks"]
        assert len(before) == 2
        real = protected.executor()
        words, environment = real.cmdline(), real.environ()
        secret = environment.pop(SECRET)
        strangers = {
            "no-secret": (words, environment),
            "another-secret": (words, environment | {SECRET: "0" * len(secret)}),
            "no-log-in": ([w for w in words if "spark.authenticate" not in w], environment),
        }
        for name, (command, variables) in strangers.items():
            with _executor(command, variables, tmp_path / name, real.cwd()) as stranger:
                assert stranger.wait(200 * PATIENCE) != 0, stranger.tail()
            assert secret not in stranger.output()
        assert protected.found()["blocks"] == before
        with _executor(words, environment | {SECRET: secret}, tmp_path / "own", real.cwd()) as own:
            wait_for(lambda: len(protected.found()["blocks"]) == 3, own.tail, timeout=60)


@contextmanager
def _executor(
    command: list[str], variables: Mapping[str, str], log: Path, folder: str
) -> Iterator[ChildProcess]:
    """One more executor, number 9, that no worker watches over."""
    command = list(command)
    for option, value in (("--executor-id", "9"), ("--worker-url", None)):
        at = command.index(option)
        command[at : at + 2] = [] if value is None else [option, value]
    child = ChildProcess(command, log=log, name="executor", env=variables, cwd=Path(folder))
    try:
        yield child
    finally:
        child.kill()
