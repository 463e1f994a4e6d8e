"""`evenflow key` and `evenflow doctor` ask pages that want a token, or that speak TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from evenflow.settings import Settings, load_settings
from monitoring.instruments.spark import SparkInstruments
from monitoring.serving import served
from workbench.assist.doctor.ports import check_ports
from workbench.assist.findings import Finding
from workbench.assist.key_lookup import Reply, ask_all

TOKEN = "correct-horse-battery"


@contextmanager
def pages(
    heard: list[str | None],
    status: int,
    context: ssl.SSLContext | None = None,
    *,
    location: str | None = None,
) -> Iterator[str]:
    """A server that remembers the header Authorization of each request. Gives its `host:port`.
    location: where its answers send the client.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers["Authorization"])
            self.send_response(status)
            if location is not None:
                self.send_header("Location", location)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.fixture
def token(tmp_path: Path) -> str:
    (tmp_path / "token").write_text(TOKEN)
    return str(tmp_path / "token")


def asked(monkeypatch: pytest.MonkeyPatch, settings: Settings, place: str, *, named: bool) -> Reply:
    monkeypatch.setattr("workbench.assist.key_lookup.with_topic_partitions", lambda settings: settings)
    monkeypatch.setattr("workbench.assist.key_lookup.by_its_rule", lambda settings: settings)
    monkeypatch.setattr("workbench.assist.key_lookup._places", lambda settings: [("a", place)])
    (reply,) = ask_all(settings, b"DE", at=[place] if named else [], patience=10)
    return reply


def test_the_token_goes_to_an_address_that_the_user_names(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    heard: list[str | None] = []
    settings = load_settings(web={"token_file": token})
    with pages(heard, 401) as place:
        reply = asked(monkeypatch, settings, place, named=True)
    assert heard == [f"Bearer {TOKEN}"]
    assert reply.trouble == "401: it wants another token than that of web.token_file"


def test_without_tls_an_address_from_telemetry_does_not_get_the_token(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    heard: list[str | None] = []
    settings = load_settings(web={"token_file": token})
    with pages(heard, 401) as place:
        reply = asked(monkeypatch, settings, place, named=False)
    assert heard == [None]
    assert "--at host:port" in reply.trouble


def test_over_tls_only_a_server_of_the_authority_gets_the_token(
    monkeypatch: pytest.MonkeyPatch, token: str, tmp_path: Path
) -> None:
    ours, theirs = trustme.CA(), trustme.CA()
    ours.cert_pem.write_to_path(tmp_path / "ca.pem")
    files = {name: str(tmp_path / "ca.pem") for name in ("tls_ca", "tls_certificate", "tls_key")}
    settings = load_settings(web={"token_file": token, **files})
    for authority, expected in ((ours, [f"Bearer {TOKEN}"]), (theirs, [])):
        heard: list[str | None] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        with pages(heard, 503, context) as place:
            reply = asked(monkeypatch, settings, place, named=False)
        assert heard == expected
        assert reply.trouble.startswith("503" if expected else "no answer")


def test_a_certificate_of_any_authority_of_the_system_is_no_reason_to_give_the_token_away(
    monkeypatch: pytest.MonkeyPatch, token: str, tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    files = {name: str(tmp_path / "ca.pem") for name in ("tls_certificate", "tls_key")}
    settings = load_settings(web={"token_file": token, **files})
    for named, expected in ((False, [None]), (True, [f"Bearer {TOKEN}"])):
        heard: list[str | None] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        with pages(heard, 401, context) as place:
            reply = asked(monkeypatch, settings, place, named=named)
        assert heard == expected
        assert named or "web.tls_ca" in reply.trouble


def test_a_name_that_the_pages_refuse_is_told_with_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    with pages([], 421) as place:
        reply = asked(monkeypatch, load_settings(), place, named=True)
    assert reply.trouble == "421: it does not answer under this name: see web.hosts"


def proving(folder: Path) -> tuple[ssl.SSLContext, dict[str, str]]:
    """TLS of a page whose certificate an authority has signed, and the settings of `[web]` that name it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context, {name: str(folder / "ca.pem") for name in ("tls_ca", "tls_certificate", "tls_key")}


def examined(settings: Settings, port: int | str) -> Finding:
    """What the doctor says of this port of the Spark application."""
    spark = settings.spark.model_copy(update={"web_port": int(port)})
    (finding,) = check_ports(settings.model_copy(update={"spark": spark}))
    return finding


def test_the_doctor_asks_without_the_token_where_no_authority_proves_the_page(token: str) -> None:
    settings = load_settings(query={"name": "q"}, web={"token_file": token})
    with served(SparkInstruments(settings), "127.0.0.1", 0, setting="x", web=settings.web) as port:
        finding = examined(settings, port)
    assert finding.status == "warning"
    assert "wants the token, so whether it is this query's is not known" in finding.what
    assert "set spark.web_port to a free port" in finding.do
    assert "web.tls_ca" in finding.do


def test_the_doctor_knows_pages_that_want_the_token(token: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate = authority.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "page.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    files = {"tls_ca": "ca.pem", "tls_certificate": "page.pem", "tls_key": "key.pem"}
    files = {name: str(tmp_path / file) for name, file in files.items()}
    settings = load_settings(query={"name": "q"}, web={"token_file": token, **files})
    with served(SparkInstruments(settings), "127.0.0.1", 0, setting="x", web=settings.web) as port:
        finding = examined(settings, port)
    assert (finding.status, "served by this query" in finding.what) == ("ok", True)


@pytest.mark.parametrize("proven", [False, True], ids=["plain", "tls"])
def test_a_redirect_takes_the_token_nowhere(token: str, tmp_path: Path, proven: bool) -> None:
    context, files = proving(tmp_path)
    settings = load_settings(web={"token_file": token} | (files if proven else {}))
    heard: list[str | None] = []
    elsewhere: list[str | None] = []
    with (
        pages(elsewhere, 200) as other,
        pages(heard, 302, context if proven else None, location=f"http://{other}/metrics/") as place,
    ):
        finding = examined(settings, place.rpartition(":")[2])
    assert heard == [f"Bearer {TOKEN}" if proven else None]
    assert elsewhere == []
    assert finding.status == "problem"


def test_no_proxy_sees_what_the_doctor_asks(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    heard: list[str | None] = []
    overheard: list[str | None] = []
    with pages(overheard, 200) as proxy, pages(heard, 401) as place:
        monkeypatch.setenv("http_proxy", f"http://{proxy}")
        finding = examined(load_settings(web={"token_file": token}), place.rpartition(":")[2])
    assert (heard, overheard) == ([None], [])
    assert finding.status == "warning"


def test_a_page_that_wants_another_token_than_it_got_is_none_of_this_query(
    token: str, tmp_path: Path
) -> None:
    context, files = proving(tmp_path)
    with pages([], 401, context) as place:
        finding = examined(load_settings(web={"token_file": token, **files}), place.rpartition(":")[2])
    assert finding.status == "problem"


def test_a_port_that_does_not_speak_http_is_a_problem_and_no_crash() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=greet, args=(server,), daemon=True)
        answering.start()
        finding = examined(load_settings(), server.getsockname()[1])
        answering.join(10)
    assert finding.status == "problem"


def greet(server: socket.socket) -> None:
    """Answer one connection as a server of another kind does."""
    connection, _ = server.accept()
    with connection:
        connection.recv(10_000)
        connection.sendall(b"SSH-2.0-x\r\n")
