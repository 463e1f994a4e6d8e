"""The HTTP client of a schema registry, with bounds on what one answer may cost.

confluent-kafka's client bounds how long the registry may say nothing. It bounds neither how long an answer
may take nor how large it may become. A registry that sends a byte a second, or a small body that decompresses
to gigabytes, would hold up a partitioner or fill its memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

MOST_BYTES = 4_000_000
"""Bytes of one answer. A schema has a few thousand."""


class UnfitAnswer(Exception):
    """The registry's answer is none that is read. The error's text says why."""


class BoundedClient(httpx2.Client):
    """An HTTP client, each of whose answers comes as a whole, uncompressed, within bounds of time and size.

    seconds: for the whole of one answer. options: as of `httpx2.Client`. Any number of threads may ask at
    once. Raises `httpx2.ReadTimeout` for an answer that takes longer, UnfitAnswer for any other that does not
    fit.
    """

    def __init__(
        self, *, seconds: float, clock: Callable[[], float] = time.monotonic, **options: Any
    ) -> None:
        super().__init__(**options, timeout=seconds, headers={"Accept-Encoding": "identity"})
        self._deadline = _Deadline(seconds, clock)
        # Proxies of the environment have transports of their own.
        for transport in (self._transport, *self._mounts.values()):
            if isinstance(transport, httpx2.HTTPTransport):
                pool: Any = transport._pool
                pool._network_backend = _Network(pool._network_backend, self._deadline)

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request, and read its answer. An answer that does not fit ends its connection."""
        options["stream"] = True
        with self._deadline.running():
            response = super().send(request, **options)
            try:
                body = self._body(response)
            finally:
                response.close()
        return httpx2.Response(
            response.status_code, headers=response.headers, content=body, request=response.request
        )

    def _body(self, response: httpx2.Response) -> bytes:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise UnfitAnswer(f"it is compressed ({encoding[:20]!a}), though we ask for answers that are not")
        body = bytearray()
        for piece in response.iter_raw():
            self._deadline.left()
            body += piece
            if len(body) > MOST_BYTES:
                raise UnfitAnswer(f"it has more than {MOST_BYTES:,} bytes")
        return bytes(body)


class _Deadline:
    """When the answer that this thread waits for has to be complete.

    A thread sends and receives one request at a time, so threads that share a client do not see the
    deadlines of one another.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._thread = threading.local()

    @contextmanager
    def running(self) -> Iterator[None]:
        """From now on until the end of the block, the time of one answer runs."""
        self._thread.until = self._clock() + self._seconds
        try:
            yield
        finally:
            del self._thread.until

    def left(self) -> float | None:
        """Seconds until the deadline, None outside of an answer. Raises `httpx2.ReadTimeout` past it."""
        until = getattr(self._thread, "until", None)
        if until is None:
            return None
        left: float = until - self._clock()
        if left <= 0:
            raise httpx2.ReadTimeout(f"no whole answer within {self._seconds:g} s")
        return left

    def bounded(self, call: Callable[..., Any], *words: Any, timeout: float | None, **more: Any) -> Any:
        """What this call returns. It gets the rest of the time as its timeout, if that is less."""
        left = self.left()
        waits = [seconds for seconds in (timeout, left) if seconds is not None]
        try:
            return call(*words, timeout=min(waits, default=None), **more)
        except Exception:
            self.left()  # if that was the end of the time, the error says so
            raise


class _Stream:
    """A connection whose reads and writes end at the deadline."""

    def __init__(self, stream: Any, deadline: _Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = self._deadline.bounded(self._stream.read, max_bytes, timeout=timeout)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._deadline.bounded(self._stream.write, buffer, timeout=timeout)

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> _Stream:
        stream = self._deadline.bounded(
            self._stream.start_tls, ssl_context, server_hostname=server_hostname, timeout=timeout
        )
        return _Stream(stream, self._deadline)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Network:
    """Makes connections that end at the deadline."""

    def __init__(self, backend: Any, deadline: _Deadline) -> None:
        self._backend, self._deadline = backend, deadline

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **more: Any) -> _Stream:
        stream = self._deadline.bounded(self._backend.connect_tcp, host, port, timeout=timeout, **more)
        return _Stream(stream, self._deadline)

    def connect_unix_socket(self, path: str, timeout: float | None = None, **more: Any) -> _Stream:
        stream = self._deadline.bounded(self._backend.connect_unix_socket, path, timeout=timeout, **more)
        return _Stream(stream, self._deadline)

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)
