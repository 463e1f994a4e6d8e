"""The input topic of the settings as it is in Kafka: whether it exists, and how many partitions it has."""

from __future__ import annotations

from difflib import get_close_matches

from evenflow.errors import ConfigError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from evenflow.settings.beginning import as_begun
from topics.admin import ROLES, describe, topic_names
from topics.query.record import read_beginning, refuse_changed, refuse_taken_key_columns, with_lookup_content
from topics.state import TopicState

_MOST_NAMED = 10
_MADE_BY_SERVICES = tuple(f".{role}" for role in ROLES if role != "input")


def with_topic_partitions(settings: Settings) -> Settings:
    """These settings with the number of partitions of the input topic. No topic is created.

    Raises ConfigError if there is no such topic, IncompatibleStateError if the settings give another number
    of partitions, ServiceError if the broker does not answer.
    """
    topic = settings.topic("input")
    state = describe(settings.kafka, [topic]).get(topic)
    if state is None:
        raise missing_input(settings, topic_names(settings.kafka))
    if settings.input.partitions not in (None, state.partitions):
        raise other_partitions(settings, state)
    return settings.with_input_partitions(state.partitions)


def admitted(settings: Settings) -> Settings:
    """As `with_topic_partitions`, and with the limits and columns of any value
    with which the query began (`as_begun`).

    Also raises IncompatibleStateError if the query began with other settings than these, and ConfigError for
    key columns whose names results cannot have.

    If partitions were added to the input topic that the query has not taken in yet, these settings have the
    number of partitions that it has taken in.
    """
    query_settings = with_topic_partitions(settings)
    beginning = read_beginning(query_settings.origin)
    if beginning is not None and len(beginning.begin) > query_settings.input_partitions:
        # The topic may have grown, and was taken in, since it was looked at.
        query_settings = with_topic_partitions(settings)
    if beginning is not None and len(beginning.begin) < query_settings.input_partitions:
        query_settings = query_settings.with_input_partitions(len(beginning.begin))
    query_settings = with_lookup_content(query_settings, beginning)
    if beginning is not None:
        # Without one this is not asked again: the query may have begun, and may have taken in partitions that
        # were added, since the topic was looked at. The states of its partitions tell other settings then.
        refuse_changed(query_settings, beginning=beginning)
    query_settings = as_begun(query_settings, beginning)
    refuse_taken_key_columns(query_settings)
    return query_settings


def by_its_rule(settings: Settings) -> Settings:
    """These settings with the rules by which the query began (`as_begun`), for a look at its input.

    A user who may not read how the query began looks by the rules of queries that begin now.
    """
    try:
        beginning = read_beginning(settings.origin)
        return with_lookup_content(as_begun(settings, beginning), beginning)
    except (IncompatibleStateError, ServiceError):
        return settings


def other_partitions(settings: Settings, topic: TopicState) -> IncompatibleStateError:
    """The error for an `input.partitions` that is not the number of partitions of this topic."""
    return IncompatibleStateError(
        f"topic {topic.name} has {topic.partitions} partitions, but input.partitions is set to"
        f" {settings.input.partitions}",
        hint=(
            "take input.partitions out of the settings: the number is read from the topic, and partitions"
            " that are added to the topic are taken in"
        ),
    )


def missing_input(settings: Settings, existing: list[str]) -> ConfigError:
    """The error for an input topic that does not exist. existing: names of topics to suggest."""
    topic = settings.topic("input")
    theirs = [name for name in existing if not name.startswith("__") and not name.endswith(_MADE_BY_SERVICES)]
    close = get_close_matches(topic, theirs, n=3, cutoff=0.7)
    if close:
        hint = f"did you mean {' or '.join(close)}? Set input.topic"
    elif theirs:
        more = "" if len(theirs) <= _MOST_NAMED else f" and {len(theirs) - _MOST_NAMED} more"
        hint = f"set input.topic to one that exists ({', '.join(theirs[:_MOST_NAMED])}{more})"
    else:
        hint = f"the broker {settings.kafka.bootstrap_servers} has no topics: is it the right one?"
    named = (
        "" if "query" in settings.model_fields_set else " (no settings file was read, so this is the default)"
    )
    return ConfigError(
        f"there is no topic {topic}, which the query reads{named}",
        hint=f"{hint}; or make it: `evenflow topics create`, or `evenflow replay`",
    )
