"""What a service logs and refuses before it begins. Until then it makes, reads and commits nothing."""

from __future__ import annotations

import logging
import time

from confluent_kafka import KafkaException

from evenflow.errors import ConfigError, DataLossError, EvenflowError, ServiceError
from evenflow.settings import Settings
from partitioner_service.kafka.committed_state import all_states
from topics.admin import describe
from topics.query.input_topic import by_its_rule, with_topic_partitions
from workbench.assist.findings import Finding, unforeseen
from workbench.assist.sample_check.report import SampleReport, check_sample
from workbench.assist.sample_check.sample import SAMPLE, newest_records, sampled_records

log = logging.getLogger("evenflow.sample_check")


def before_start(settings: Settings, *, most: int = SAMPLE) -> None:
    """Look at a sample of the input topic (at most `most` records) and log in a few lines what it holds.

    The sample is not the input that the query means if most of it is unreadable, if a column never occurs or
    never holds what is needed, or if most event times are of a wrong unit. For a query that has not begun,
    this raises ConfigError. For a query that has begun, it is only logged, because its data may have changed.

    An error in the look itself is logged as a warning. It stops no service, whatever the records hold. For a
    missing topic, the error of `with_topic_partitions` is raised.
    """
    settings = with_topic_partitions(settings)
    begun = _begun(settings)
    try:
        refusal = _look(settings, most, begun=begun)
    except (ServiceError, DataLossError) as error:
        _warn_unknown(settings, error.message)
    except Exception as error:  # records may hold anything
        _warn_unknown(settings, unforeseen(error))
    else:
        if refusal is not None:
            raise refusal


def _look(settings: Settings, most: int, *, begun: bool) -> ConfigError | None:
    """Log what the sample holds. Returns the refusal if the query has not begun and there are problems."""
    topic = settings.topic("input")
    if begun:
        settings = by_its_rule(settings)
    # A query that has begun reads on where the newest records are.
    of_topic = newest_records if begun else sampled_records
    sample = of_topic(settings.kafka, describe(settings.kafka, [topic])[topic], most=most)
    look = check_sample(settings, sample, now=int(time.time() * 1000))
    log.info("%s", look.summary())
    if look.problems and not begun:
        return _refusal(look)
    for finding in look.findings:
        if finding.status != "ok":
            log.warning("%s", _finding_text(finding))
    return None


def _warn_unknown(settings: Settings, why: str) -> None:
    topic = settings.topic("input")
    log.warning("sample of %s: cannot be read, so nothing is known of its records: %s", topic, why)


def _begun(settings: Settings) -> bool:
    try:
        return bool(all_states(settings))
    except (EvenflowError, KafkaException):
        return True  # the service itself will say what is wrong with the committed state


def _refusal(look: SampleReport) -> ConfigError:
    listing = "".join(
        f"\n  - {_finding_text(finding)}" for finding in look.findings if finding.status != "ok"
    )
    lines = look.toml()
    mend = f"in evenflow.toml:\n\n{lines}\n" if lines else "mend the settings or the records; "
    return ConfigError(
        f"topic {look.facts.topic} does not fit the settings, and query {look.settings.query.name} has not"
        f" begun, so nothing was made or read:{listing}",
        hint=f"{mend}--unchecked starts it all the same",
    )


def _finding_text(finding: Finding) -> str:
    return finding.what + (f" -> {finding.do}" if finding.do else "")
