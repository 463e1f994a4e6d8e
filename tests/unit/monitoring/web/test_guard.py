"""Who gets a page: requests under a name of ours and with the token, whatever headers they bring."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.settings import WebSettings, load_settings
from monitoring.web.guard import Guard, Refusal

TOKEN = "correct-horse-battery"


def refusal(
    guard: Guard,
    *,
    host: str | None = "127.0.0.1:8080",
    method: str = "GET",
    path: str = "/metrics/",
    token: str | None = None,
) -> Refusal | None:
    hosts = [] if host is None else [host]
    return guard.refusal(method=method, path=path, hosts=hosts, authorization=token)


def status(answer: Refusal | None) -> int:
    return 200 if answer is None else answer.status


@pytest.fixture
def locked(tmp_path: Path) -> Guard:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return Guard(WebSettings(token_file=tmp_path / "token"), "127.0.0.1")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:9", "[::1]:9", "10.1.2.3:80", "LocalHost:1", "localhost.", "pages.example:8"],
)
def test_pages_answer_under_addresses_and_names_of_ours(host: str) -> None:
    assert refusal(Guard(WebSettings(hosts=["Pages.Example"]), "0.0.0.0"), host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil",
        "127.0.0.1:80,evil",
        "127.0.0.1@evil",
        "[evil]",
    ],
)
@pytest.mark.parametrize("path", ["/", "/metrics/", "/alive/", "/live/state/"])
def test_a_foreign_name_gets_no_page_not_even_a_probe(host: str | None, path: str) -> None:
    assert status(refusal(Guard(WebSettings(), "127.0.0.1"), host=host, path=path)) == 421


@given(st.text(max_size=40))
def test_no_name_but_ours_passes(host: str) -> None:
    passes = refusal(Guard(WebSettings(), "127.0.0.1"), host=f"x{host}.evil.example") is None
    assert not passes


def test_a_request_with_two_names_gets_no_page() -> None:
    guard = Guard(WebSettings(), "127.0.0.1")
    assert (
        status(guard.refusal(method="GET", path="/", hosts=["localhost", "evil.example"], authorization=None))
        == 421
    )


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_no_method_that_changes_something_is_taken(method: str) -> None:
    assert status(refusal(Guard(WebSettings(), "127.0.0.1"), method=method)) == 405


def basic(word: str) -> str:
    return "Basic " + base64.b64encode(f"anyone:{word}".encode()).decode()


def test_the_token_opens_pages_as_a_bearer_token_and_as_a_password(locked: Guard) -> None:
    for offer in (f"Bearer {TOKEN}", f"bearer  {TOKEN} ", basic(TOKEN)):
        assert refusal(locked, token=offer) is None
    for offer in (None, "", "Bearer", f"Bearer {TOKEN}x", basic(""), "Basic ??", f"Basic {TOKEN}", TOKEN):
        answer = refusal(locked, token=offer)
        assert answer is not None
        assert (answer.status, "WWW-Authenticate" in answer.headers) == (401, True)
        assert TOKEN not in answer.text


@given(st.text(max_size=60))
def test_no_other_header_opens_a_page(locked_anywhere: Guard, header: str) -> None:
    assert TOKEN in header or status(refusal(locked_anywhere, token=header)) == 401


@pytest.fixture(scope="module")
def locked_anywhere(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    file = tmp_path_factory.mktemp("web") / "token"
    file.write_text(TOKEN)
    return Guard(WebSettings(token_file=file), "127.0.0.1")


def test_a_probe_without_the_token_gets_yes_or_no_alone(locked: Guard) -> None:
    assert refusal(locked, path="/alive") is None
    assert locked.bare(path="/alive", authorization=None, status=503) == '{"alive": false}'
    assert locked.bare(path="/healthy/", authorization=None, status=200) == '{"healthy": true}'
    assert locked.bare(path="/healthy/", authorization=f"Bearer {TOKEN}", status=503) is None
    assert locked.bare(path="/status/", authorization=None, status=200) is None


def test_a_new_token_counts_at_once_and_a_lost_one_opens_nothing(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    guard = Guard(WebSettings(token_file=file), "127.0.0.1")
    file.write_text(TOKEN[::-1])
    assert status(refusal(guard, token=f"Bearer {TOKEN}")) == 401
    assert refusal(guard, token=f"Bearer {TOKEN[::-1]}") is None
    file.unlink()
    assert status(refusal(guard, token=f"Bearer {TOKEN[::-1]}")) == 503


@pytest.mark.parametrize("content", [None, b"", b"short", b"two words of a token", b"\xff\xfe" * 20])
def test_a_file_without_a_token_is_refused_at_the_start(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(ConfigError, match=r"web\.token_file") as refused:
        Guard(WebSettings(token_file=tmp_path / "token"), "127.0.0.1")
    assert content is None or content == b"" or str(content)[2:-1] not in str(refused.value)


@pytest.mark.parametrize("name", ["http://a", "a:80", "a/b", "", "*"])
def test_hosts_are_names(name: str) -> None:
    with pytest.raises(ConfigError, match=r"web\.hosts.*no name of a host"):
        load_settings(web={"hosts": [name]})


def test_a_certificate_needs_a_key() -> None:
    with pytest.raises(ConfigError, match="go together"):
        load_settings(web={"tls_certificate": "a.pem"})
