"""The three answers at the top of the page: is it keeping up, is it balanced, is it right?"""

from __future__ import annotations

from evenflow.talking import silent_after, stuck_after
from monitoring.live.glance import Glance, Verdict, Word

_MOST_SECONDS = 30  # of reading, for the records that are not read yet
SILENT = silent_after()
"""Seconds after which a partitioner that says nothing is shown as silent."""


def verdicts(glance: Glance, *, unfit: int, repeated: int) -> dict[str, Verdict]:
    """The answers by question.

    unfit: how many result values are null because they do not fit. repeated: partial rows that had been
    merged before.
    """
    return {
        "keeping up": _keeping_up(glance),
        "balanced": _balanced(glance),
        "right": _right(glance, unfit=unfit, repeated=repeated),
    }


def _keeping_up(glance: Glance) -> Verdict:
    silent = [f"partitioner {i.name}" for i in glance.instances if i.silent > SILENT]
    silent += [stage.name for stage in glance.stages if stage.silent > silent_after(stage.interval_s)]
    if silent:
        return Verdict(word="bad", text=f"nothing is heard of {', '.join(silent[:3])}")
    if not glance.instances or not glance.stages:
        missing = "a partitioner" if not glance.instances else "Spark"
        return Verdict(word="unknown", text=f"nothing has been heard of {missing} yet")
    stuck = [s for s in glance.stages if s.running is not None and s.running > stuck_after(s.interval_s)]
    if stuck:
        return Verdict(
            word="bad", text=f"{stuck[0].name} has been in one micro-batch for {stuck[0].running:.0f} s"
        )
    # Lag counts records. A filter makes fewer tuples than records, and `explode` more.
    # So records/s are compared, if known.
    pace = glance.rate if glance.read_rate is None else glance.read_rate
    if glance.lag and pace is not None and glance.lag > _MOST_SECONDS * pace:
        return Verdict(
            word="bad", text=f"{glance.lag:,} records are not read yet, over {_MOST_SECONDS} s of work"
        )
    loads = [stage.load for stage in glance.stages if stage.load is not None]
    if not loads:
        return Verdict(word="unknown", text="no micro-batch has ended yet")
    # The zones of Prompt+ with their default bounds (001, chapter 3.3).
    zone = "overload" if max(loads) > 0.9 else "stable" if max(loads) > 0.8 else "room to spare"
    return Verdict(word="bad" if max(loads) > 0.9 else "good", text=f"W is {max(loads):.2f}: {zone}")


def _balanced(glance: Glance) -> Verdict:
    if glance.imbalance is None:
        return Verdict(word="unknown", text="no tuples in the last period")
    word: Word = "bad" if glance.imbalance > 0.1 else "warn" if glance.imbalance > 0.05 else "good"
    return Verdict(
        word=word, text=f"the fullest worker has {glance.imbalance:.1%} of all tuples more than the mean"
    )


def _right(glance: Glance, *, unfit: int, repeated: int) -> Verdict:
    if not glance.instances:
        return Verdict(word="unknown", text="nothing has been heard of a partitioner yet")
    if glance.rejected_share is not None and glance.rejected_share > 0.01:
        return Verdict(word="bad", text=f"{glance.rejected_share:.1%} of the records are rejected")
    seen = [f"{glance.rejected:,} records were rejected"] if glance.rejected else []
    seen += [f"{unfit:,} result values do not fit and are null"] if unfit else []
    seen += [f"{repeated:,} partial rows came again and changed nothing"] if repeated else []
    return Verdict(
        word="warn" if seen else "good", text="; ".join(seen) or "nothing was rejected or repeated"
    )
