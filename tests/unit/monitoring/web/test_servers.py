"""Both web servers over real sockets: headers, names, tokens, TLS, and many connections at once."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import ssl
import threading
from contextlib import ExitStack, closing
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path

import pytest
import trustme

from evenflow.errors import ConfigError
from evenflow.settings import load_settings
from monitoring.web.threads import BoundedServer, QuietHandler
from tests.unit.monitoring.web.servers import SERVERS, app_of, serving

PAGES = {
    "threads": ["/live/", "/live/state/", "/metrics/", "/alive/", "/healthy/", "/nothing/", "/"],
    "faust": [
        "/",
        "/live/",
        "/live/state/",
        "/key/",
        "/status/",
        "/metrics/",
        "/alive/",
        "/healthy/",
        "/nothing/",
    ],
}
TOKEN = "correct-horse-battery"
EXPECTED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Answer:
    """status: of HTTP. headers: of the answer. body: its bytes."""

    status: int
    headers: Message
    body: bytes


def answer(port: int, path: str, *, method: str = "GET", **headers: str) -> Answer:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    with closing(connection):
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())


@pytest.mark.parametrize("server", SERVERS)
def test_every_answer_has_the_headers_whatever_its_status(server: str, tmp_path: Path) -> None:
    with serving(server, tmp_path) as port:
        for path in PAGES[server]:
            for headers in ({}, {"Host": "evil.example"}):
                response = answer(port, path, **headers)
                shown = {name: response.headers[name] for name in EXPECTED}
                assert shown == EXPECTED, (path, response.status)
                assert response.status != 500, path
                policy = response.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy


@pytest.mark.parametrize("server", SERVERS)
def test_a_page_that_was_reached_by_a_rebound_name_is_not_shown(server: str, tmp_path: Path) -> None:
    with serving(server, tmp_path, hosts=["proxy.example"]) as port:
        for path in PAGES[server]:
            assert answer(port, path, Host=f"evil.example:{port}").status == 421
        assert answer(port, "/metrics/", Host="proxy.example").status == 200


@pytest.mark.parametrize("server", SERVERS)
def test_every_page_asks_for_the_token_and_probes_say_yes_or_no(server: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    with serving(server, tmp_path, token_file=str(tmp_path / "token")) as port:
        for path in PAGES[server]:
            response = answer(port, path)
            if path in ("/alive/", "/healthy/"):
                assert set(json.loads(response.body)) == {path.strip("/")}, "no reason"
            else:
                assert response.status == 401, path
        assert answer(port, "/metrics/", Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize("server", SERVERS)
def test_pages_speak_tls_and_nothing_else_when_they_have_a_certificate(server: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    own.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    files = {"tls_certificate": str(tmp_path / "cert.pem"), "tls_key": str(tmp_path / "key.pem")}
    with serving(server, tmp_path, **files) as port:
        connection = HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
        connection.request("GET", "/metrics/")
        assert connection.getresponse().status == 200
        connection.close()
        with pytest.raises((OSError, HTTPException)):
            answer(port, "/metrics/")


@pytest.mark.parametrize("server", SERVERS)
def test_a_certificate_that_is_replaced_counts_for_the_next_connection(server: str, tmp_path: Path) -> None:
    files = {"tls_certificate": str(tmp_path / "cert.pem"), "tls_key": str(tmp_path / "key.pem")}

    def replace() -> ssl.SSLContext:
        """Write a certificate of a new authority; what trusts this authority alone."""
        authority = trustme.CA()
        own = authority.issue_cert("127.0.0.1")
        for name, pem in (("cert.pem", own.cert_chain_pems[0]), ("key.pem", own.private_key_pem)):
            pem.write_to_path(tmp_path / "new")
            (tmp_path / "new").replace(tmp_path / name)
        context = ssl.create_default_context()
        authority.configure_trust(context)
        return context

    def status(context: ssl.SSLContext) -> int:
        with closing(HTTPSConnection("127.0.0.1", port, timeout=20, context=context)) as connection:
            connection.request("GET", "/metrics/")
            return connection.getresponse().status

    first = replace()
    with serving(server, tmp_path, **files) as port:
        assert status(first) == 200
        second = replace()
        assert status(second) == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            status(first)
        (tmp_path / "key.pem").write_text("half a fi")
        assert status(second) == 200, "files that do not fit together are left alone"
        assert status(replace()) == 200


def test_files_of_tls_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("no certificate")
    file = str(tmp_path / "a.pem")
    with (
        pytest.raises(ConfigError, match=r"web\.tls_certificate .* cannot be used"),
        serving("threads", tmp_path, tls_certificate=file, tls_key=file),
    ):
        pass


@pytest.mark.parametrize("server", SERVERS)
def test_hundreds_of_idle_connections_hold_few_threads_and_keep_no_probe_out(
    server: str, tmp_path: Path
) -> None:
    most = 8
    with serving(server, tmp_path, connections=most) as port, ExitStack() as idle:
        before = threading.active_count()
        mine = [
            idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)) for _ in range(200)
        ]
        assert answer(port, "/metrics/").status == 200
        assert mine[0].recv(1) == b"", "the oldest was closed"
        assert threading.active_count() - before <= most + 2


def test_a_burst_of_connections_waits_to_be_accepted_and_is_not_dropped() -> None:
    """What the kernel drops is tried again after a second, and a probe among it comes that much too late."""
    with BoundedServer(("127.0.0.1", 0), QuietHandler) as server, ExitStack() as clients:
        for _ in range(100):  # nobody accepts yet
            clients.enter_context(socket.create_connection(server.server_address[:2], timeout=0.9))


def test_the_routes_of_an_instance_are_these_and_none_changes_anything(tmp_path: Path) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 2})
    with socket.create_server(("127.0.0.1", 0)) as listening:
        web = app_of(settings, tmp_path, listening).web
        web.init_server()
        routes = {
            (route.method, route.resource.canonical)
            for route in web.web_app.router.routes()  # type: ignore[attr-defined]
        }
    assert {method for method, _ in routes} <= {"GET", "HEAD"}
    assert {path for _, path in routes} == {
        "/",
        "/live/",
        "/live/state/",
        "/key/{rest}",
        "/status/",
        "/healthy/",
        "/alive/",
        "/metrics/",
    }


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_no_page_takes_a_request_that_could_change_something(
    server: str, method: str, tmp_path: Path
) -> None:
    with serving(server, tmp_path) as port:
        assert {answer(port, path, method=method).status for path in PAGES[server]} == {405}


@pytest.mark.parametrize(
    ("server", "path"), [("threads", "/live/"), ("faust", "/live/"), ("faust", "/"), ("faust", "/key/")]
)
def test_the_policy_of_a_page_names_its_own_styles_and_scripts_and_no_others(
    server: str, path: str, tmp_path: Path
) -> None:
    with serving(server, tmp_path) as port:
        page = answer(port, path)
    assert page.status == 200
    text, policy = page.body.decode(), page.headers["Content-Security-Policy"]
    inline = re.findall(r"<(style|script)>(.*?)</\1>", text, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for _, body in inline}
    assert hashes
    assert set(re.findall(r"sha256-([^']+)", policy)) == hashes
    assert not re.search(r"<(style|script) |style=|\bon\w+=", text), "no policy would let these take effect"
