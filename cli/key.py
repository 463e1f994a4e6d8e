"""`evenflow key`: where does a key go, by every instance of the partitioner?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from workbench.assist.key_lookup import Reply


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(key)


def key(
    context: typer.Context,
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help="The key as it stands in results, such as DE, 5 or '[\"DE\",5]'. Behind -- if it is -5.",
        ),
    ],
    base64: Annotated[
        bool, typer.Option("--base64", help="KEY is base64, as `key_base64` in results.")
    ] = False,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="HOST:PORT",
            help="Ask the instance whose pages are here. May be repeated. Default: all, by their telemetry.",
        ),
    ] = None,
    wait: Annotated[
        str, typer.Option("--wait", metavar="DURATION", help="How long to wait for each instance.")
    ] = "10s",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Ask every partitioner instance where a key goes, and which rule says so.

    Home, holders and share are those of each instance by itself. Nothing changes.
    Exit 1 if an instance does not answer.
    """
    import json

    from evenflow.commands.context import milliseconds, settings_of
    from evenflow.settings.typed_key import key_bytes

    settings = settings_of(context)

    from workbench.assist.key_lookup import ask_all, homes_of

    encoded_key = key_bytes(settings.query, _typed(key, encoded=base64))
    replies = ask_all(settings, encoded_key, at=at or (), patience=milliseconds("--wait", wait) / 1000)
    if as_json:
        homes = {str(home): names for home, names in homes_of(replies).items()}
        typer.echo(json.dumps({"homes": homes, "instances": [reply.as_json() for reply in replies]}))
    else:
        _print(replies)
    raise typer.Exit(1 if any(reply.trouble for reply in replies) else 0)


def _typed(key: str, *, encoded: bool) -> bytes:
    """The bytes that were typed. Python has bytes of the command line that are not UTF-8 as surrogates."""
    import base64
    import os

    from evenflow.errors import ConfigError

    if not encoded:
        return os.fsencode(key)
    try:
        return base64.b64decode(key, validate=True)
    except ValueError as error:
        raise ConfigError(f"KEY is not base64: {error}") from None


def _print(replies: list[Reply]) -> None:
    from rich.table import Table
    from rich.text import Text

    from evenflow.commands.context import table_console
    from workbench.assist.key_lookup import homes_of

    console = table_console(width=160, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("instance", "home", "holders", "share", "rule"):
        table.add_column(heading, overflow="fold")
    for reply in replies:
        table.add_row(*map(Text, _row(reply)), style="red" if reply.trouble else "")
    console.print(table)
    homes = homes_of(replies)
    if len(homes) > 1:
        homes_text = "; ".join(f"worker {home}: {', '.join(names)}" for home, names in sorted(homes.items()))
        console.print(
            Text(
                f"the instances have different homes for this key ({homes_text}). Each decides by what it has"
                " seen itself, so the key is on several workers. Results are right all the same."
            )
        )


def _row(reply: Reply) -> tuple[str, str, str, str, str]:
    from evenflow.reporting.words import numbers, printable

    name, answer = printable(reply.instance), reply.answer
    if answer is None:
        return name, "-", "-", "-", reply.trouble
    workers = [holder.worker for holder in answer.holders] or answer.next_workers
    share = answer.share
    return (
        name,
        "-" if answer.home is None else str(answer.home),
        "any" if workers is None else numbers(set(workers)),
        "-" if share is None else f"{share:.2%}",
        printable(answer.rule),
    )
