"""The three answers at the top of the page: is it keeping up, is it balanced, is it right?"""

from __future__ import annotations

from evenflow.reporting import Sign, Trouble, hanging, silence
from monitoring.live.glance import Glance, HealthVerdict, Word

_MOST_SECONDS = 30  # of reading, for the records that are not read yet


def verdicts(glance: Glance, *, unfit: int, repeated: int) -> dict[str, HealthVerdict]:
    """The answers by question.

    unfit: how many result values are null because they do not fit. repeated: partial rows that had been
    merged before.
    """
    return {
        "keeping up": _keeping_up(glance),
        "balanced": _balanced(glance),
        "right": _right(glance, unfit=unfit, repeated=repeated),
    }


def _keeping_up(glance: Glance) -> HealthVerdict:
    verdict = _moving(glance)
    # Every instance says it, as it is about the windows of all.
    warning = next((text for instance in glance.instances for text in instance.warnings), None)
    return (
        verdict
        if warning is None or verdict.word in ("bad", "warn")
        else HealthVerdict(word="warn", text=warning)
    )


def _moving(glance: Glance) -> HealthVerdict:
    """Whether all parts work and all that should move does."""
    signs = _signs(glance)
    silent = [(sign, trouble) for sign in signs if (trouble := silence(sign)) is not None]
    ended = [trouble for sign, trouble in silent if sign.ended is not None]
    if ended:
        return HealthVerdict(word="bad", text=ended[0].text)
    if silent:
        return _silent(silent, whole=len(signs) > 1 and len(silent) == len(signs))
    still = [
        f"partitioner {instance.name}: {why}" for instance in glance.instances for why in instance.standing
    ]
    if still:
        return HealthVerdict(word="bad", text=still[0])
    hung = sorted(filter(None, map(hanging, signs)), key=lambda trouble: trouble.level != "wrong")
    if hung:
        return HealthVerdict(word="bad" if hung[0].level == "wrong" else "warn", text=hung[0].text)
    if not glance.instances or not glance.stages:
        missing = "a partitioner" if not glance.instances else "Spark"
        return HealthVerdict(word="unknown", text=f"nothing has been heard of {missing} yet")
    # Lag counts records. A filter makes fewer tuples than records, and `explode` more.
    # So records/s are compared, if known.
    pace = glance.rate if glance.read_rate is None else glance.read_rate
    if glance.lag and pace is not None and glance.lag > _MOST_SECONDS * pace:
        return HealthVerdict(
            word="bad", text=f"{glance.lag:,} records are not read yet, over {_MOST_SECONDS} s of work"
        )
    loads = [stage.load for stage in glance.stages if stage.load is not None]
    if not loads:
        return HealthVerdict(word="unknown", text="no micro-batch has ended yet")
    # The zones of Prompt+ with their default bounds (001, chapter 3.3).
    zone = "overload" if max(loads) > 0.9 else "stable" if max(loads) > 0.8 else "room to spare"
    return HealthVerdict(word="bad" if max(loads) > 0.9 else "good", text=f"W is {max(loads):.2f}: {zone}")


def _signs(glance: Glance) -> list[Sign]:
    """What is known of each part."""
    return [
        *(Sign(name=f"partitioner {instance.name}", silent=instance.silent) for instance in glance.instances),
        *(
            Sign(
                name=f"spark {stage.name}",
                silent=stage.silent,
                interval=stage.interval_s,
                running=stage.running,
                first=stage.first,
                ended=stage.ended,
            )
            for stage in glance.stages
        ),
    ]


def _silent(silent: list[tuple[Sign, Trouble]], *, whole: bool) -> HealthVerdict:
    """whole: whether no part is heard at all."""
    first = silent[0][1].text
    others = f", nor of {', '.join(sign.name for sign, _ in silent[1:3])}" if silent[1:] else ""
    return HealthVerdict(word="bad", text=f"{first}{others}{': does Kafka answer?' if whole else ''}")


def _balanced(glance: Glance) -> HealthVerdict:
    if glance.imbalance is None:
        return HealthVerdict(word="unknown", text="no tuples in the last period")
    word: Word = "bad" if glance.imbalance > 0.1 else "warn" if glance.imbalance > 0.05 else "good"
    return HealthVerdict(
        word=word, text=f"the fullest worker has {glance.imbalance:.1%} of all tuples more than the mean"
    )


def _right(glance: Glance, *, unfit: int, repeated: int) -> HealthVerdict:
    if not glance.instances:
        return HealthVerdict(word="unknown", text="nothing has been heard of a partitioner yet")
    if glance.rejected_share is not None and glance.rejected_share > 0.01:
        return HealthVerdict(word="bad", text=f"{glance.rejected_share:.1%} of the records are rejected")
    notes = [f"{glance.rejected:,} records were rejected"] if glance.rejected else []
    notes += [f"{unfit:,} result values do not fit and are null"] if unfit else []
    notes += [f"{repeated:,} partial rows came again and changed nothing"] if repeated else []
    return HealthVerdict(
        word="warn" if notes else "good", text="; ".join(notes) or "nothing was rejected or repeated"
    )
