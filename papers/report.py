"""docs/reproducing.md. The page is made from the results alone, so it can be made again without measuring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from evenflow.charts.page import save
from evenflow.text.markdown import wrapped
from papers import inventory
from papers.cells.run_plan import RunPlan
from papers.cells.store import Store
from papers.claims import MEASURES, ClaimVerdict, Reason, judged
from papers.markdown import table
from papers.sections import SECTIONS

_INTRO = """\
# What of the papers' figures comes out again

This page is made by `make reproduce` (`python -m papers`). Do not edit it. Every figure is counted,
or priced from counts with costs that are kept. So the page is the same on every machine. The sections `partly` and
`windowed` cite times that `evenflow bench` measured and that are kept. No run of this page takes a time.

A run measures only what is missing, for example a newly registered partitioner. After a change of a partitioner use
`--again --partitioner NAME`. A full run takes about three quarters of an hour on two cores. The options are:

* `--section NAME` measures one section.
* `--text-only` measures nothing and writes the text from [results.json](reproducing/results.json).
* `--again` also measures what has been measured before.
* `--data FOLDER` (or `EVENFLOW_DATA`) names the folder of real data.

What needs Stable-Baselines3 (section `bandits`) is measured only where the extra `rl` is installed.

Figures are medians over {seeds} hash seeds. Where the seeds differ, the least and the most stand behind the median:
(least – most). Streams are drawn with one seed, unless said otherwise. Some parts have more seeds, and say so.

Every verdict is computed from the criterion beside it. A criterion has one part for each setting, stream or rule that
it names:

* *reproduced*: all parts hold.
* *partly*: at least half of the parts hold. Some claims speak of all settings or give a bound (all, always, every, no,
  up to, at most, at least, within). One counterexample breaks such a claim, so at least three quarters must hold.
* *not reproduced*: fewer parts hold.

Each claim that is not fully reproduced has a *reason*:

* *paper*: the paper's own words, or something that it does not give, and it is shown here that this is the cause.
* *data*: our stream is another or a smaller one.
* *ours*: our rule or setting differs, or our rule does not do what is claimed.
* *measure* (unexamined or other measure): we measured something else than the paper, or we have not examined what the
  cause is. This says nothing against the paper.

Each verdict names its *measure*:

{measures}

A claim that our own measure makes true or false, whatever the partitioners do, is not counted. Those claims have lists
of their own, [true by construction](#true-by-construction) and [false by construction](#false-by-construction). Checks
and variants of ours ("ours, to ...") are not counted either.

*Lower* and *higher* compare seed by seed: a is lower than b if it is lower in at least 9 of 10 seeds and its median is
lower by more than 1 %. A smaller distance counts as *no difference*, and so as no win. All other comparisons are of
medians. A criterion is as strict as the claim's words. Where a criterion grants a tolerance, or puts a number to a word
such as "much", it says which.
"""

REASONS: dict[Reason, str] = {
    "paper": "the paper",
    "data": "the data",
    "ours": "ours",
    "measure": "another measure, or what would have to be measured",
}
FINDINGS = {
    "F1": (
        "The public Storm code of 002 never counts its tuples. So every key is head, and D-C and W-C both"
        " choose the least loaded of all workers."
    ),
    "F2": (
        "The public simulator of 002 has 100 SpaceSaving counters, where 5n or more are needed. It also adds"
        " the error to an estimate that is an upper bound already. So for n >= 10 nearly every key is head,"
        " and W-C and RR become shuffling. The simulator checks two prefixes of the head where the paper asks"
        " for all. Our rule has 20n counters."
    ),
    "F3": (
        "In the public code of 004 the rule called PK-2 is CM-2 in all experiments. So the paper's PK-2 bars"
        " may show CM-2."
    ),
    "F4": (
        "In the public code of 004 AM-5 and cAM-5 look keys up with five hashes and store them with one. So"
        " they split keys (2.2 and 3.3 copies)."
    ),
    "F5": (
        "In the public code of 004 sketches are not cleared between windows. So AM-2-H becomes hashing from"
        " the second window on."
    ),
    "F6": "The public code of 000 clears the wrong bit when a slide expires. So fragmentation never falls.",
    "F7": (
        "The Count-Min sketch in the code of 000 has 20 usable columns. So after a third of a slide every key"
        " is hot, the Q table has 50,000 rows where theorem 3.4 allows n, and KSR on Zipf 1.0 is 1.23."
    ),
    "F8-F9": (
        "The cooperative version in the code of 000 sends statistics after it has cleared them, and a sum "
        "overflows. So from the second slide on every tuple is hot, and the worst arm may win."
    ),
    "F10": (
        "The code of 000 caps the workers of a hot key (2, growing to 6 or n). The paper does not say so. "
        "`explore=capped` does the same."
    ),
    "F13": (
        "Prompt in the code of 000 visits keys in order of id instead of frequency, and overwrites its plan"
        " at the end."
    ),
    "F14": (
        "The micro-batch Two-Choices in the code of 000 never updates a load. So it is hashing with the"
        " second function."
    ),
    "F15": (
        "The code of 000 hashes the chosen worker once more into Flink's key groups. So about 1/e of the"
        " workers get nothing."
    ),
    "F16": (
        "The merge of Q tables in 000 divides by the load as well, which squeezes merged rows towards 0. Our"
        " merge divides by the sum of the weights."
    ),
}
"""Differences between public code and its paper that explain differences on this page, by finding."""

NOT_MEASURED = (
    (
        "002, fig. 12",
        "imbalance over time on Wikipedia and Twitter",
        "the data is not at hand. Drawn streams stand for the cashtags above",
    ),
    (
        "004, fig. 10, 12",
        "window latency against PK-2 on the Google trace",
        "a time, and the trace is not at hand. The cost of splitting is above",
    ),
    ("004, fig. 13", "partition latency", "a time. docs/measurements.md has ours"),
    (
        "001, fig. 4.7-4.9 on GCM",
        "the same on the Google trace",
        "the trace is not at hand, and its skew is not published",
    ),
    ("001, fig. 4.9", "throughput", "needs a cluster. The time to plan is above"),
    (
        "001, fig. 3.7a, 3.7b",
        "throughput and violations of a system that schedules groups",
        (
            "needs a cluster, and a Spark with group scheduling. What a trigger costs Spark is measured"
            " above, and the queue is played in virtual time"
        ),
    ),
)


def write(store: Store, plan: RunPlan, page: Path) -> dict[str, list[ClaimVerdict]]:
    """Write the page and its pictures. Returns the verdicts by section."""
    folder = page.parent / page.stem
    folder.mkdir(parents=True, exist_ok=True)
    verdicts: dict[str, list[ClaimVerdict]] = {}
    body: list[str] = []
    for name, section in SECTIONS.items():
        figures = store.figures(name)
        verdicts[name] = [judged(claim, figures, plan) for claim in section.CLAIMS]
        for stem, chart in section.pictures(figures, plan).items():
            save(chart, folder / f"{stem}.svg")
        body += [f"## {section.TITLE}", "", f"Section `{name}`.", ""]
        body += [*_claims(verdicts[name]), "", "### Figures", "", *section.text(figures, plan), ""]
    measures = "\n".join(f"* *{name}*: {meaning}." for name, meaning in MEASURES.items())
    lines = [_INTRO.format(seeds=len(plan.seeds), measures=measures)]
    if plan.quick:
        lines += [
            "**A quick run**: small streams and two seeds. It shows that everything works, not what holds.",
            "",
        ]
    lines += [
        "## Verdicts",
        "",
        *_summary(verdicts),
        "",
        *body,
        *_findings(),
        *_not_measured(),
        "",
        *inventory.text(),
    ]
    # Sections write links as `reproducing/...`. With `--out` the page, and so its folder, may have another
    # name.
    text = "\n".join(lines).replace("reproducing/", f"{page.stem}/")
    page.write_text(wrapped(text.rstrip() + "\n"), encoding="utf-8")
    return verdicts


def _summary(verdicts: dict[str, list[ClaimVerdict]]) -> list[str]:
    every = [item for items in verdicts.values() for item in items]
    count = Counter(item.level for item in every if item.counts)
    total = ", ".join(f"{many} {level}" for level, many in count.most_common())
    rows = [
        [
            item.claim.source,
            item.claim.statement,
            f"**{item.level}**",
            item.parts,
            item.claim.measure,
            item.reason or "-",
        ]
        for item in every
        if not item.claim.constructed
    ]
    return [
        f"{count.total()} claims of the papers: {total}.",
        "",
        *_reasons(every),
        *table(["source", "claim", "verdict", "parts that hold", "measure", "reason"], rows, left=6),
        "",
        *_by_construction(every, holds=True),
        "",
        *_by_construction(every, holds=False),
    ]


def _by_construction(every: Sequence[ClaimVerdict], *, holds: bool) -> list[str]:
    """The list of the claims that what we measure makes true, or false."""
    answer = "true" if holds else "false"
    rows = [
        [item.claim.source, item.claim.statement, item.parts, item.claim.measure, item.claim.constructed]
        for item in every
        if (item.claim.by_construction if holds else item.claim.false_by_construction)
    ]
    return [
        f"### {answer.capitalize()} by construction",
        "",
        (
            f"What we measure makes these claims {answer} by itself. So they say nothing about the papers, and"
            " are not counted."
        ),
        "",
        *table(["source", "claim", "parts that hold", "measure", "why"], rows, left=5),
    ]


def _reasons(every: Sequence[ClaimVerdict]) -> list[str]:
    """A sentence that counts the reasons of the claims that are not fully reproduced."""
    differing = [item for item in every if item.reason and item.counts]
    count = Counter(item.reason for item in differing)
    counts_text = ", ".join(f"{REASONS[reason]} {count[reason]} times" for reason in REASONS)
    return [f"Of the {len(differing)} that are not fully reproduced, the reason is {counts_text}.", ""]


def _claims(items: list[ClaimVerdict]) -> list[str]:
    lines = []
    for item in items:
        claim = item.claim
        lines += [
            f"* {claim.statement} ({claim.source})",
            f"    * criterion: {claim.criterion}",
            f"    * measure: {claim.measure}",
            f"    * ours: {item.ours}",
            f"    * **{item.level}**{_parts(item)}{': ' + item.why if item.why else ''}",
        ]
        if claim.constructed:
            answer = "true" if claim.by_construction else "false"
            lines.append(f"    * {answer} by construction, so not counted: {claim.constructed}")
        elif item.reason:
            lines.append(f"    * reason: {REASONS[item.reason]}")
    return lines


def _parts(item: ClaimVerdict) -> str:
    return (
        ""
        if item.level == "not measured"
        else f" ({item.parts} {'part' if item.parts.endswith(' 1') else 'parts'})"
    )


def _findings() -> list[str]:
    rows = [[name, meaning] for name, meaning in FINDINGS.items()]
    return [
        "## Public code that differs from its paper",
        "",
        (
            "These differences were found by reading and running the public code. The papers' own figures may"
            " have been made with this code. None of it is copied here."
        ),
        "",
        *table(["", "finding"], rows, left=2),
        "",
    ]


def _not_measured() -> list[str]:
    return ["## Not measured here", "", *table(["source", "claim", "why"], map(list, NOT_MEASURED), left=3)]
