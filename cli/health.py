"""`evenflow health`: ask a part of a pipeline whether it is healthy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import ssl


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(health)


def health(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="A page /healthy/ or /alive/ of a part.")
    ] = "http://127.0.0.1:8080/healthy/",
    timeout: Annotated[float, typer.Option(help="Seconds to wait for its answer.", min=0.1)] = 5.0,
) -> None:
    """Ask a part whether it is healthy: exit 0 if it is, 1 and the reason if it is not.
    For containers' health checks.
    """
    import json
    import urllib.error
    import urllib.request
    from contextlib import suppress

    try:
        with urllib.request.urlopen(url, timeout=timeout, context=_context(url)) as answer:
            typer.echo(answer.read(10_000).decode(errors="replace").strip())
    except urllib.error.HTTPError as error:
        reply = error.read(10_000).decode(errors="replace").strip()
        with suppress(ValueError, KeyError, TypeError):  # another server's answer is shown as it is
            reply = json.loads(reply)["reason"]
        typer.echo(f"{error.code}: {reply}", err=True)
        raise typer.Exit(1) from None
    except (OSError, ValueError) as error:
        typer.echo(f"no answer from {url}: {error}", err=True)
        raise typer.Exit(1) from None


def _context(url: str) -> ssl.SSLContext | None:
    """TLS for this address. What does not leave this machine needs no proof of who answers, and the probe
    has no secret.
    """
    import ssl
    from urllib.parse import urlsplit

    address = urlsplit(url)
    if address.scheme != "https":
        return None
    context = ssl.create_default_context()
    if address.hostname in ("127.0.0.1", "::1", "localhost"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
