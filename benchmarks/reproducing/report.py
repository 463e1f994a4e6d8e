"""docs/reproducing.md: made from the results alone, so it can be made again without measuring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.reproducing.claims import Judged, Reason, judged
from benchmarks.reproducing.markdown import table
from benchmarks.reproducing.plan import Plan
from benchmarks.reproducing.sections import SECTIONS
from benchmarks.reproducing.store import Store
from evenflow.charts.page import save

_INTRO = """\
# What of the papers' figures comes out again

Made by `make reproduce` (`python -m benchmarks.reproducing`); do not edit. Everything here is counted, nothing is timed,
so the page is the same on every machine. `--section NAME` measures one section, `--text-only` writes the text from
[results.json](reproducing/results.json), `--again` measures anew what is there, `--data FOLDER` (or `EVENFLOW_DATA`)
names the folder of real data. A run computes what is missing only, e.g. a newly registered partitioner; after a change
of one: `--again --partitioner NAME`. A full run takes about half an hour on two cores. What needs Stable-Baselines3
(section `bandits`) is measured where the extra `rl` is installed.

Figures are medians over {seeds} hash seeds, with (least – most) behind where seeds differ. Streams are drawn with one
seed, unless said otherwise.

Every verdict is computed from the criterion beside it, which has one part for each setting, stream or rule it names:

* *reproduced*: all parts hold.
* *partly*: at least half of them do. Where the claim speaks of all settings or gives a bound (all, always, every, no,
  up to, at most, at least, within), one counterexample breaks it: then at least three quarters.
* *not reproduced*: fewer.

Each claim that is not fully reproduced has a *reason*. *paper*: its words, or something it does not give. *data*: our
stream is another or a smaller one. *ours*: our rule or setting differs, or our rule does not do what is claimed.

*Lower* and *higher* compare seed by seed: a is lower than b when it is so in at least 9 of 10 seeds and its median is
lower by more than 1 %. What is less is *no difference*, and no win. Other figures are medians. A criterion is as strict
as the claim's words; where it grants a tolerance, or puts a number to a word such as "much", it says which.
"""

REASONS: dict[Reason, str] = {"paper": "the paper", "data": "the data", "ours": "ours"}
FINDINGS = {
    "F1": "Public Storm code of 002 never counts its tuples: every key is head, and D-C = W-C = least loaded of all.",
    "F2": "Public simulator of 002 has 100 SpaceSaving counters (5n or more are needed) and adds the error to an estimate "
    "that is an upper bound already: for n >= 10 nearly every key is head, and W-C and RR become shuffling. Ours has 20n "
    "counters. It also checks two prefixes of the head where the paper asks for all.",
    "F3": "In public code of 004 the rule called PK-2 is CM-2 in all experiments; the PK-2 bars may be CM-2.",
    "F4": "There AM-5 and cAM-5 look keys up with five hashes and store one: keys are split (2.2 and 3.3 copies).",
    "F5": "There sketches are not cleared between windows: AM-2-H becomes hashing from the second window on.",
    "F6": "Public code of 000 clears the wrong bit when a slide expires: fragmentation never falls.",
    "F7": "Its Count-Min sketch has 20 usable columns: after a third of a slide every key is hot, the Q table has 50,000 "
    "rows where theorem 3.4 allows n, and KSR on Zipf 1.0 is 1.23.",
    "F8-F9": "Its cooperative version sends statistics after clearing them and overflows a sum: from the second slide on "
    "every tuple is hot, and the worst arm may win.",
    "F10": "It caps the workers of a hot key (2, growing to 6 or n), which the paper does not say: `explore=capped`.",
    "F13": "Its Prompt visits keys in order of id instead of frequency and overwrites its plan at the end.",
    "F14": "Its micro-batch Two-Choices never updates a load: it is hashing with the second function.",
    "F15": "It hashes the chosen worker once more into Flink's key groups: about 1/e of the workers get nothing.",
    "F16": "000's merge of Q tables divides by the load as well, which squeezes merged rows towards 0; ours divides by the "
    "sum of the weights.",
}
"""Where public code differs from its paper, as far as it explains differences here."""

NOT_MEASURED = (
    (
        "000, fig. 7-9, 11, 13, 14a",
        "throughput 1.3x to 6.7x, by forwarding 3x, by cooperation 1.4x to 3.4x",
        "needs a cluster; imbalance, Gamma and Eq. 2, the costs it names, are measured above",
    ),
    (
        "000, fig. 8, 9b",
        "the same for micro-batches",
        "throughput; the suite above has the micro-batch rules",
    ),
    (
        "000, fig. 9c",
        "correlation clustering of voters",
        "throughput, and the registry of voters is not at hand",
    ),
    ("000, fig. 10a-b", "cost of statistics per window", "a time; see docs/measurements.md for ours"),
    ("000, fig. 10c", "latency by heavy hitters", "a time; their effect on imbalance is above"),
    (
        "000, fig. 11",
        "hot keys tracked or not, 1.2x",
        "no Dalton here takes every key for hot; it would need a row of values for each",
    ),
    ("000, fig. 12", "throughput by input rate", "needs a cluster"),
    (
        "000, fig. 13",
        "hashing outruns DAGreedy where a source is uniform",
        "by throughput, which holds the cost of each decision; the imbalance of both is in the table",
    ),
    (
        "002, fig. 12",
        "imbalance over time on Wikipedia and Twitter",
        "the data is not at hand; of the cashtags there are drawn streams above",
    ),
    ("002, fig. 13-14", "throughput 1.5x PKG, latency -60 %", "needs a cluster"),
    (
        "004, fig. 5, 6, 8, 9",
        "throughput and window latency",
        "needs a cluster; imbalance and aggregation cost, its two causes, are above",
    ),
    (
        "004, fig. 10, 12",
        "window latency against PK-2 on the Google trace",
        "a time, and the trace is not at hand; the cost of splitting is above",
    ),
    ("004, fig. 13", "partition latency", "a time; see docs/measurements.md for ours"),
    ("001, fig. 2.7-2.9", "throughput, latency, cost of post-sorting", "needs a cluster; a time"),
    ("001, fig. 3.7b", "how often latency is violated", "the thesis does not say its workload"),
    ("003, fig. 10", "-0.3 after 15 minutes and within 2 s from the first step", "needs its testbed"),
)


def write(store: Store, plan: Plan, page: Path) -> dict[str, list[Judged]]:
    """Page and pictures. Gives the verdicts by section."""
    folder = page.parent / page.stem
    folder.mkdir(parents=True, exist_ok=True)
    verdicts: dict[str, list[Judged]] = {}
    body: list[str] = []
    for name, section in SECTIONS.items():
        found = store.found(name)
        verdicts[name] = [judged(claim, found, plan) for claim in section.CLAIMS]
        for stem, chart in section.pictures(found, plan).items():
            save(chart, folder / f"{stem}.svg")
        body += [f"## {section.TITLE}", "", f"Section `{name}`.", ""]
        body += [*_claims(verdicts[name]), "", "### Figures", "", *section.text(found, plan), ""]
    lines = [_INTRO.format(seeds=len(plan.seeds))]
    if plan.quick:
        lines += [
            "**A quick run**: small streams and two seeds. It shows that everything works, not what holds.",
            "",
        ]
    lines += ["## Verdicts", "", *_summary(verdicts), "", *body, *_findings(), *_not_measured()]
    text = "\n".join(lines).replace("reproducing/", f"{page.stem}/")
    page.write_text(text.rstrip() + "\n", encoding="utf-8")
    return verdicts


def _summary(verdicts: dict[str, list[Judged]]) -> list[str]:
    every = [item for items in verdicts.values() for item in items]
    count = Counter(item.level for item in every if not item.claim.own)
    total = ", ".join(f"{many} {level}" for level, many in count.most_common())
    rows = [
        [item.claim.source, item.claim.says, f"**{item.level}**", item.parts, item.reason or "-"]
        for item in every
    ]
    return [
        f"{count.total()} claims of the papers: {total}.",
        "",
        *_reasons(every),
        *table(["source", "claim", "verdict", "parts that hold", "reason"], rows, left=5),
    ]


def _reasons(every: Sequence[Judged]) -> list[str]:
    """How many differences lie in what."""
    differing = [item for item in every if item.reason and not item.claim.own]
    count = Counter(item.reason for item in differing)
    told = ", ".join(f"{REASONS[reason]} {count[reason]} times" for reason in REASONS)
    return [f"Of the {len(differing)} that are not fully reproduced, the reason is {told}.", ""]


def _claims(items: list[Judged]) -> list[str]:
    lines = []
    for item in items:
        claim = item.claim
        lines += [
            f"* {claim.says} ({claim.source})",
            f"    * criterion: {claim.criterion}",
            f"    * ours: {item.ours}",
            f"    * **{item.level}**{_parts(item)}{': ' + item.why if item.why else ''}",
            *([f"    * reason: {REASONS[item.reason]}"] if item.reason else []),
        ]
    return lines


def _parts(item: Judged) -> str:
    return (
        ""
        if item.level == "not measured"
        else f" ({item.parts} {'part' if item.parts.endswith(' 1') else 'parts'})"
    )


def _findings() -> list[str]:
    rows = [[name, what] for name, what in FINDINGS.items()]
    return [
        "## Public code that differs from its paper",
        "",
        "Found by reading and running it; the papers' own figures may have been made with it. None of it is copied here.",
        "",
        *table(["", "finding"], rows, left=2),
        "",
    ]


def _not_measured() -> list[str]:
    return ["## Not measured here", "", *table(["source", "claim", "why"], map(list, NOT_MEASURED), left=3)]
