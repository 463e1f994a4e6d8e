"""`evenflow topics`: `create` makes the input topic, `list` shows the query's topics,
`strimzi` prints manifests.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="Make the input topic; list the query's topics; print them for Strimzi.",
        no_args_is_help=True,
    )
    group.command()(create)
    group.command("list")(list_topics)
    group.command()(strimzi)
    app.add_typer(group, name="topics")


def create(
    context: typer.Context,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=256, help="Partitions. Default: input.partitions, else 4.")
    ] = None,
) -> None:
    """Make the input topic of the query, as `evenflow replay` would. Refused if the topic exists already."""
    from evenflow.commands.context import settings_of
    from evenflow.errors import ConfigError

    settings = settings_of(context)

    from topics.admin import describe, ensure_topics, input_topic

    if partitions is not None:
        settings = settings.with_input_partitions(partitions)
    spec = input_topic(settings)
    # Asked first, because `ensure_topics` is content with a topic that is there.
    state = describe(settings.kafka, [spec.name]).get(spec.name)
    if state is not None:
        raise ConfigError(
            f"topic {spec.name} exists already, with {state.partitions} partitions",
            hint="nothing needs to be made; `evenflow doctor` says what it holds",
        )
    ensure_topics(settings.kafka, [spec])
    retention = "keeps records for ever; their timestamps are their event times"
    typer.echo(f"made topic {spec.name} with {spec.partitions} partitions ({retention})", err=True)


def list_topics(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One object a topic on standard output.")] = False,
) -> None:
    """List the topics of the query and its views by role, with their partitions and offsets. Nothing is
    made.
    """
    from evenflow.commands.context import settings_of
    from evenflow.settings.views import TopicRole, queries

    settings = settings_of(context)

    from topics.admin import ROLES, describe

    names: dict[str, tuple[TopicRole, str | None]] = {settings.topic(role): (role, None) for role in ROLES}
    for query_settings in queries(settings):
        for role in ROLES:
            names.setdefault(query_settings.topic(role), (role, query_settings.query.view_name))
    states = describe(settings.kafka, names)
    for name, (role, view_name) in names.items():
        state = states.get(name)
        fields = {
            "role": role,
            **({"view": view_name} if view_name is not None else {}),
            "topic": name,
            "partitions": None if state is None else state.partitions,
            "offsets": None if state is None else state.records,
        }
        if as_json:
            typer.echo(json.dumps(fields))
        else:
            size = (
                "is not there"
                if state is None
                else f"{state.partitions} partitions, {state.records:,} offsets"
            )
            typer.echo(f"{role:10} {name:40} {size}")


def strimzi(
    context: typer.Context,
    cluster: Annotated[str, typer.Option(help="Name of Strimzi's Kafka resource.")] = "kafka",
) -> None:
    """Print the topics of the query, and a user with ACLs for each part, as Strimzi's resources.
    No broker is asked.
    """
    import yaml

    from evenflow.commands.context import settings_of

    settings = settings_of(context)

    from workbench.strimzi.manifests import manifests

    typer.echo("# Made by `evenflow topics strimzi`.")
    typer.echo(yaml.safe_dump_all(manifests(settings, cluster=cluster), sort_keys=False), nl=False)
