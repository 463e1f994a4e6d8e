"""What a service says and refuses before it begins: nothing is made, read or committed until then."""

from __future__ import annotations

import logging
import time

from evenflow.errors import ConfigError, DataLossError, EvenflowError, ServiceError
from evenflow.settings import Settings
from partitioner_service.source import all_states
from topics.admin import TopicState, describe
from topics.settled import settled
from workbench.findings import Finding
from workbench.look.look import Look, look_at
from workbench.look.sample import SAMPLE, newest_records

log = logging.getLogger("evenflow.look")


def before_start(settings: Settings, *, most: int = SAMPLE) -> None:
    """Look at a sample of the input topic (at most `most` records) and log in a few lines what it holds.

    Raises ConfigError when the query has not begun and what the sample holds cannot be meant: nothing readable, a
    column that never occurs or never holds what is needed, times of a wrong unit. What a query that has begun finds
    is said only, since its data may have changed. Raises what `settled` does of a missing topic.
    """
    settings = settled(settings)
    state = describe(settings.kafka, [settings.topic("input")])[settings.topic("input")]
    look = _looked(settings, state, most)
    if look is None:
        return
    log.info(look.summary())
    if look.problems and not _begun(settings):
        raise _refusal(look)
    for finding in look.findings:
        if finding.status != "ok":
            log.warning(_said(finding))


def _looked(settings: Settings, state: TopicState, most: int) -> Look | None:
    try:
        sample = newest_records(settings.kafka, state, most=most)
    except (ServiceError, DataLossError) as error:
        log.warning(
            "sample of %s: cannot be read, so nothing is known of its records: %s", state.name, error.message
        )
        return None
    return look_at(settings, sample, now=int(time.time() * 1000))


def _begun(settings: Settings) -> bool:
    try:
        return bool(all_states(settings))
    except EvenflowError:
        return True  # what is committed there is not ours to judge: the service says what is wrong with it


def _refusal(look: Look) -> ConfigError:
    found = "".join(f"\n  - {_said(finding)}" for finding in look.findings if finding.status != "ok")
    lines = look.toml()
    mend = f"in evenflow.toml:\n\n{lines}\n" if lines else "mend the settings or the records; "
    return ConfigError(
        f"topic {look.facts.topic} does not fit the settings, and query {look.settings.query.name} has not begun, so "
        f"nothing was made or read:{found}",
        hint=f"{mend}--unchecked starts it all the same",
    )


def _said(finding: Finding) -> str:
    return finding.what + (f" -> {finding.do}" if finding.do else "")
