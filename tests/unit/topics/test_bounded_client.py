"""A registry that answers without end, or with more than a schema can be, is away or refused, and soon."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

import pytest
import trustme

from evenflow.errors import ConfigError
from evenflow.settings import InputSettings
from tests.schema_registry import schema_registry
from topics.schemas.bounded_client import MOST_BYTES
from topics.schemas.registry import Registry, RegistryAway, SchemaRefused

SCHEMA = '{"type":"enum","name":"E","symbols":["A"]}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MOST_SECONDS = 10
"""What an answer may take here at most. The registries below would go on for a quarter of an hour."""


@contextmanager
def saying(pieces: Callable[[], Iterator[bytes]], *, pause: float = 0.0) -> Iterator[str]:
    """The URL of a server that answers any request with these pieces."""
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65_536)
                for piece in pieces():
                    connection.sendall(piece)
                    if over.wait(pause) if pause else over.is_set():
                        return
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)


def client(url: str, **more: object) -> Registry:
    registry = {"url": url, "timeout": "1s", **more}
    return Registry(InputSettings.model_validate({"format": "avro", "registry": registry}))


def after_the_head(first: bytes, piece: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield HEAD + first
        yield from repeat(piece, 4_500)

    return pieces


DRIPPING = {
    "body": after_the_head(b"Content-Length: 5000\r\n\r\n", b" "),
    "chunks": after_the_head(b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "headers": after_the_head(b"X: ", b"x"),
    "other answers first": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n", 4_500),
    "nothing": lambda: repeat(b"", 4_500),
}


@pytest.mark.parametrize("kind", DRIPPING)
def test_an_answer_that_drips_ends_with_the_time_that_one_may_take(kind: str) -> None:
    with saying(DRIPPING[kind], pause=0.2) as url:
        begin = time.monotonic()
        with pytest.raises(RegistryAway, match="no whole answer within 1 s"):
            client(url).schema(1)
        assert time.monotonic() - begin < MOST_SECONDS


@pytest.mark.parametrize(
    "head", [b"Transfer-Encoding: chunked\r\n\r\n", f"Content-Length: {2**40}\r\n\r\n".encode()]
)
def test_a_huge_answer_is_no_schema(head: bytes) -> None:
    piece = b" " * 100_000
    if b"chunked" in head:
        piece = b"%x\r\n%s\r\n" % (len(piece), piece)
    with (
        saying(after_the_head(head, piece)) as url,
        pytest.raises(SchemaRefused, match=r"is no schema: it has more than 4,000,000 bytes"),
    ):
        client(url, timeout="30s").schema(1)


@pytest.mark.parametrize("coding", ["gzip", "GZip", "identity, gzip", "br"])
def test_a_compressed_answer_is_not_decompressed(coding: str) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    head = f"Content-Encoding: {coding}\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    with (
        saying(lambda: iter([HEAD + head + bomb])) as url,
        pytest.raises(SchemaRefused, match=r"is no schema: it is compressed \('"),
    ):
        client(url).schema(1)


def test_no_compressed_answer_is_asked_for() -> None:
    with schema_registry() as kept:
        kept.register(SCHEMA)
        assert client(kept.url).schema(1) is not None
        assert [headers["Accept-Encoding"] for headers in kept.headers] == ["identity"]


def test_a_schema_almost_as_large_as_an_answer_may_be_comes() -> None:
    with schema_registry() as kept:
        kept.register(SCHEMA + " " * (MOST_BYTES - 1_000))
        result = client(kept.url).schema(1)
        assert result is not None
        assert len(result.texts[0]) > MOST_BYTES - 1_000


def test_the_schemas_that_a_schema_refers_to_are_bounded_together() -> None:
    with schema_registry() as kept:
        names = [f"E{place}" for place in range(6)]
        for name in names:
            kept.register(SCHEMA.replace('"E"', f'"{name}"') + " " * (MOST_BYTES - 1_000), subject=name)
        references = [{"name": name, "subject": name, "version": 1} for name in names]
        number = kept.register('{"type":"record","name":"R","fields":[]}', references=references)
        with pytest.raises(SchemaRefused, match="refers to have more than 16,000,000 characters"):
            client(kept.url, timeout="30s").schema(number)


def test_a_slow_answer_does_not_hold_up_another_of_the_same_client() -> None:
    """Threads share a client, and each answer has its own time."""
    with saying(DRIPPING["body"], pause=0.2) as slow, schema_registry() as kept:
        kept.register(SCHEMA)
        registry = client(f"{slow},{kept.url}")
        begin = time.monotonic()
        assert registry.schema(1) is not None
        assert 1 <= time.monotonic() - begin < MOST_SECONDS


def test_user_and_password_still_come_with_each_question() -> None:
    with schema_registry() as kept:
        kept.register(SCHEMA)
        assert client(kept.url, username="ann", password="secret").schema(1) is not None
        assert kept.headers[0]["Authorization"] == "Basic YW5uOnNlY3JldA=="


def test_a_proxy_of_the_environment_is_still_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with schema_registry() as kept:
        kept.register(SCHEMA)
        monkeypatch.setenv("HTTP_PROXY", kept.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert client("http://registry.invalid").schema(1) is not None
        assert kept.headers[0]["Host"] == "registry.invalid"
    with saying(DRIPPING["headers"], pause=0.2) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        with pytest.raises(RegistryAway, match="no whole answer within 1 s"):
            client("http://registry.invalid").schema(1)


def test_the_authority_of_the_settings_still_counts(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with schema_registry(context) as kept:
        kept.register(SCHEMA)
        assert kept.url.startswith("https:")
        assert client(kept.url, ssl_ca=str(tmp_path / "ca.pem")).schema(1) is not None
        with pytest.raises(RegistryAway, match="certificate"):
            client(kept.url).schema(1)


def test_a_handshake_that_drips_ends_with_the_time_that_an_answer_may_take() -> None:
    with saying(lambda: repeat(b"\x16", 4_500), pause=0.2) as url:
        begin = time.monotonic()
        with pytest.raises(RegistryAway, match="does not answer"):
            client(url.replace("http:", "https:")).schema(1)
        assert time.monotonic() - begin < MOST_SECONDS


def test_an_authority_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"input\.registry cannot be used"):
        client("https://127.0.0.1:1", ssl_ca=str(tmp_path / "none.pem"))
