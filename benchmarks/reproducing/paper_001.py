"""001, Abdelhamid's thesis (2021), chapter 2: BSI, BCI and KSR of Prompt and its rivals, and the reduce buckets of Alg. 3.

A micro-batch has 100,000 tuples in 16 data blocks. Rules with memory forget at the end of a batch. The thesis uses
tweets, TPC-H and a synthetic Zipf stream. Here the streams are Zipf with three exponents, words, and flights. Synthetic
streams are drawn anew for each seed, since Prompt itself uses no hash. Reduce buckets are hashed with another function
for each seed: the seed renames the key hashes, and `bucket_of` then mixes the new names.
"""

from __future__ import annotations

from itertools import product
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.reproducing.charts import Emphasis, scatter
from benchmarks.reproducing.claims import Claim, Outcome
from benchmarks.reproducing.comparing import lower, no_higher
from benchmarks.reproducing.markdown import figure, number, ratio, table
from benchmarks.reproducing.plan import Cell, Opened, Plan, Stream
from benchmarks.reproducing.routing import tumbled, windows
from benchmarks.reproducing.store import Found, MissingError, Values
from evenflow import metrics
from evenflow.charts.axes import decades
from evenflow.charts.page import page
from evenflow.keys import bucket_of, salts
from evenflow.partitioners.prompt.reduce_buckets import allocate_all, clusters_of

if TYPE_CHECKING:
    import altair

NAME = "micro-batch"
TITLE = "001: Prompt's blocks and buckets"
WORKERS = 16
BUCKETS = 16
BATCHES = 5
RULES = (
    "shuffle",
    "time-based",
    "hashing",
    "pkg",
    "pk5",
    "cam",
    "prompt",
    "prompt:order=quasi",
    "prompt:rest=roomiest",
)
RIVALS = ("pkg", "pk5", "cam")
OTHERS = ("shuffle", "time-based", *RIVALS)
"""All rules but hashing and Prompt."""
PICTURE = (
    "Prompt's blocks are equally full, as shuffling's are; how many keys they hold depends on the stream"
)
EMPHASIS = Emphasis("prompt", (*RULES[:6], *RULES[7:]))
_LEAST_BSI = 1e-6
"""Least BSI that is drawn, as a share of hashing's. Smaller ones are drawn here."""


def _streams(plan: Plan) -> dict[str, Stream]:
    batch = _batch(plan)
    keys = plan.pick(100_000, 2_000)
    return {
        **{f"Zipf {z}": Stream("zipf", BATCHES * batch, keys, z) for z in (0.5, 1.0, 1.5)},
        "words": Stream("words", BATCHES * batch),
        "flights-tailnum": Stream("flights-tailnum", plan.pick(3 * batch, BATCHES * batch)),
    }


def _batch(plan: Plan) -> int:
    return plan.pick(100_000, 2_000)


def _cell(plan: Plan, stream: str, rule: str) -> Cell:
    return Cell(NAME, "blocks", _streams(plan)[stream], WORKERS, rule)


def cells(plan: Plan) -> list[Cell]:
    """Every stream with every rule."""
    return [_cell(plan, *at) for at in product(_streams(plan), RULES)]


def measure(cell: Cell, opened: Opened, plan: Plan) -> Values:
    """Means over the batches, one value per seed."""
    found: Values = {}
    for seed in plan.seeds:
        stream = opened.at(seed)
        renamed = salts(seed, 1)[0]
        # Here a batch is a number of tuples, so row numbers take the place of event times.
        if stream.next_time is None:
            stream = type(stream)(
                stream.keys, stream.codes, np.arange(len(stream)), stream.key_count, len(stream)
            )
        batch = _batch(plan)
        workers = tumbled(stream, cell.partitioner, workers=WORKERS, seed=seed, window_ms=batch)
        each = [
            _block_figures(workers[rows], stream.codes[rows], stream.keys[rows] ^ renamed)
            for rows in windows(stream, batch)
        ]
        for name in each[0]:
            found.setdefault(name, []).append(float(np.mean([one[name] for one in each])))
    return found


def _block_figures(blocks: np.ndarray, codes: np.ndarray, keys: np.ndarray) -> dict[str, float]:
    clusters = clusters_of(blocks, keys)
    sizes = clusters.sizes
    hashed, allocated = (
        np.bincount(buckets, weights=sizes, minlength=BUCKETS)
        for buckets in (bucket_of(clusters.keys, BUCKETS), allocate_all(clusters, BUCKETS))
    )
    return {
        "bsi": metrics.block_size_imbalance(blocks, WORKERS),
        "bci": metrics.block_cardinality_imbalance(blocks, codes, WORKERS),
        "fullest": float(metrics.worker_cardinalities(blocks, codes, WORKERS).max()),
        "ksr": metrics.replication_factor(blocks, codes),
        "mpi": metrics.micro_batch_index(blocks, codes, WORKERS),
        "hashed": float(hashed.max() - hashed.mean()),
        "allocated": float(allocated.max() - allocated.mean()),
    }


def _present(found: Found, plan: Plan) -> list[str]:
    there = [stream for stream in _streams(plan) if all(_cell(plan, stream, rule) in found for rule in RULES)]
    if not there:
        raise MissingError("no stream")
    return there


def _median(found: Found, plan: Plan, stream: str, rule: str, name: str) -> float:
    return found.median(_cell(plan, stream, rule), name)


def _values(found: Found, plan: Plan, stream: str, rule: str, name: str) -> list[float]:
    return found.values(_cell(plan, stream, rule), name)


def _lower(found: Found, plan: Plan, stream: str, rules: tuple[str, str], name: str) -> bool:
    return lower(*(_values(found, plan, stream, rule, name) for rule in rules))


def _size(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for stream in _present(found, plan):
        base = _median(found, plan, stream, "hashing", "bsi")
        at = {
            rule: _median(found, plan, stream, rule, "bsi") / base
            for rule in ("shuffle", "time-based", "prompt")
        }
        rivals = min(_median(found, plan, stream, rule, "bsi") / base for rule in RIVALS)
        held += [
            value <= 0.01 and all(_lower(found, plan, stream, (rule, other), "bsi") for other in RIVALS)
            for rule, value in at.items()
        ]
        said.append(
            f"{stream}: "
            + ", ".join(f"{rule} {number(value)}" for rule, value in at.items())
            + f", best of PK-2, PK-5, cAM {number(rivals)}"
        )
    return Outcome("; ".join(said), tuple(held))


def _cardinality(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for stream in _present(found, plan):
        at = {rule: _median(found, plan, stream, rule, "bci") for rule in ("hashing", "prompt", *OTHERS)}
        held += [
            at[rule] <= min(at[other] for other in OTHERS) / 2
            and all(_lower(found, plan, stream, (rule, other), "bci") for other in OTHERS)
            for rule in ("hashing", "prompt")
        ]
        said.append(f"{stream}: " + ", ".join(f"{rule} {number(value)}" for rule, value in at.items()))
    return Outcome("; ".join(said), tuple(held))


def _cardinality_roomiest(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for stream in _present(found, plan):
        at = {
            rule: [_median(found, plan, stream, rule, name) for name in ("bci", "ksr")]
            for rule in ("prompt", "prompt:rest=roomiest")
        }
        ours, paper = at["prompt:rest=roomiest"], at["prompt"]
        rules = ("prompt:rest=roomiest", "prompt")
        copies = [_values(found, plan, stream, rule, "ksr") for rule in rules]
        held.append(_lower(found, plan, stream, rules, "bci") and no_higher(*copies))
        said.append(
            f"{stream}: BCI {number(paper[0])} -> {number(ours[0])}, KSR {ratio(paper[1])} -> {ratio(ours[1])}"
        )
    return Outcome("; ".join(said), tuple(held))


def _fullest(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for stream in _present(found, plan):
        base = _median(found, plan, stream, "shuffle", "fullest")
        at = {
            rule: _median(found, plan, stream, rule, "fullest") / base
            for rule in ("hashing", "prompt", *RIVALS)
        }
        held += [
            all(_lower(found, plan, stream, (rule, other), "fullest") for other in RIVALS)
            for rule in ("hashing", "prompt")
        ]
        said.append(f"{stream}: " + ", ".join(f"{rule} {value:.2f}" for rule, value in at.items()))
    return Outcome(f"relative to shuffling: {'; '.join(said)}", tuple(held))


def _against_shuffle(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for stream in _present(found, plan):
        shuffled = [_median(found, plan, stream, "shuffle", name) for name in ("bci", "ksr")]
        ours = [_median(found, plan, stream, "prompt", name) for name in ("bci", "ksr")]
        held.append(_lower(found, plan, stream, ("prompt", "shuffle"), "bci"))
        said.append(
            f"{stream}: BCI {number(ours[0])} / {number(shuffled[0])}, KSR {ratio(ours[1])} / {ratio(shuffled[1])}"
        )
    return Outcome(f"Prompt / shuffle: {'; '.join(said)}", tuple(held))


def _few_fragments(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for stream in _present(found, plan):
        ours = _median(found, plan, stream, "prompt", "ksr")
        rivals = min(_median(found, plan, stream, rule, "ksr") for rule in ("pkg", "pk5", "shuffle"))
        held.append(all(_lower(found, plan, stream, ("prompt", r), "ksr") for r in ("pkg", "pk5", "shuffle")))
        said.append(f"{stream}: {ratio(ours)} (best of PK-2, PK-5, shuffle {ratio(rivals)})")
    return Outcome("; ".join(said), tuple(held))


def _buckets(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for stream in _present(found, plan):
        hashed, ours = (_median(found, plan, stream, "prompt", name) for name in ("hashed", "allocated"))
        held.append(
            lower(*(_values(found, plan, stream, "prompt", name) for name in ("allocated", "hashed")))
        )
        said.append(f"{stream}: {number(hashed)} -> {number(ours)}")
    return Outcome(f"BSI of the buckets: {'; '.join(said)}", tuple(held))


def _quasi(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for stream in _present(found, plan):
        at = {
            name: [_values(found, plan, stream, rule, name) for rule in ("prompt:order=quasi", "prompt")]
            for name in ("bsi", "bci", "ksr")
        }
        held += [no_higher(*both) for both in at.values()]
        shown = (
            f"{name.upper()} {' / '.join(map(ratio if name == 'ksr' else number, map(median, reversed(both))))}"
            for name, both in at.items()
        )
        said.append(f"{stream}: {', '.join(shown)}")
    return Outcome(f"exact / quasi: {'; '.join(said)}", tuple(held))


_BCI = (
    "Step 3 gives the many small residuals of split keys to the block with least room that holds them, so a few blocks "
    'collect them. The text does not say how its "best fit" is meant to keep cardinality even.'
)
CLAIMS = (
    Claim(
        "001, fig. 2.6a-b",
        "BSI: shuffling, time-based and Prompt are the best, near 0 relative to hashing.",
        "each of the three: at most 1 % of hashing's, and lower than PK-2's, PK-5's and cAM's",
        _size,
    ),
    Claim(
        "001, fig. 2.6c-d",
        "BCI: hashing and Prompt are much better than all others.",
        "hashing and Prompt each: lower than that of shuffling, time-based, PK-2, PK-5 and cAM, and at most half of it "
        '(our number for "much")',
        _cardinality,
        reason="paper",
        because="By this measure shuffling is a strong rival, see below. " + _BCI,
        every=True,
    ),
    Claim(
        "001, fig. 2.6c-d (other reading)",
        "The same for the keys of the fullest block, BCI without its mean: hashing and Prompt are the best.",
        "each of the two: lower than PK-2's, PK-5's and cAM's",
        _fullest,
        reason="data",
        because="cAM splits no key either. So its blocks have as few keys in all as those of hashing, and where no key "
        "is very hot, cAM spreads the keys about as evenly.",
    ),
    Claim(
        "001, fig. 2.6c-d (shuffling)",
        "Prompt has lower BCI than shuffling, which splits keys without limit.",
        "BCI lower than shuffling's (KSR is told beside it)",
        _against_shuffle,
        reason="paper",
        because="BCI is max - mean. Shuffling puts nearly the same number of keys into every block, so it looks good by "
        "this measure however many fragments there are. KSR tells the two rules apart. " + _BCI,
    ),
    Claim(
        "ours, to 001 Alg. 2",
        "Giving what is left to the block with most room repairs BCI.",
        "`rest=roomiest`: BCI lower and KSR no higher than with the paper's rule",
        _cardinality_roomiest,
        reason="data",
        because="Where hardly anything is left to place, BCI is small with either rule.",
        own=True,
    ),
    Claim(
        "001, 2.4.2",
        "Prompt splits few keys.",
        "KSR lower than that of PK-2, of PK-5 and of shuffling",
        _few_fragments,
        reason="data",
        because="Where one key overloads its two workers, PKG's other keys avoid these workers and stay whole. That makes "
        "fewer copies, but one block holds far more than its share.",
    ),
    Claim(
        "001, 2.5, Alg. 3",
        "Worst-fit allocation of reduce buckets beats hashing the clusters.",
        "max - mean of the tuples of 16 buckets, in Prompt's blocks: lower than when hashed",
        _buckets,
        reason="data",
        because="Prompt splits exactly the frequent keys, and split keys must be hashed so that their parts meet. Worst fit "
        "can only place the other keys around them. On Zipf 1.5 and words the median of worst fit is lower, but not in 9 "
        "of 10 seeds.",
    ),
    Claim(
        "001, 2.4.1, Alg. 1",
        "The quasi-sorted list of the accumulator is as good as sorting.",
        "BSI, BCI and KSR no higher than with exact sorting",
        _quasi,
        reason="paper",
        because="Blocks are equally full with either order. The order decides which block gets the residuals, so BCI "
        "rises on some streams and falls on others.",
    ),
)


def text(found: Found, plan: Plan) -> list[str]:
    """Set-up and a table for each stream."""
    lines = [
        f"There are P = {WORKERS} blocks and {BUCKETS} reduce buckets. A batch has {_batch(plan):,} tuples. Figures are "
        f"means over {BATCHES} batches (3 of flights). BSI is in tuples. BCI and the fullest block are in keys. "
        '"buckets" is max - mean of the tuples of the reduce buckets, once when the clusters are hashed and once when '
        "Alg. 3 places them. MPI adds BSI, BCI and KSR with a third each, so BSI dominates it. In words the thesis defines "
        "KSR as keys / fragments. Its equation has the inverse, which is what is meant.",
        "",
    ]
    for stream in _streams(plan):
        lines += [f"Stream: {stream}", ""]
        lines += table(
            ["rule", "BSI", "BCI", "fullest", "KSR", "MPI", "buckets, hashed", "buckets, Alg. 3"],
            (
                [f"`{rule}`"]
                + [
                    figure(found, _cell(plan, stream, rule), name, ratio if name == "ksr" else number)
                    for name in ("bsi", "bci", "fullest", "ksr", "mpi", "hashed", "allocated")
                ]
                for rule in RULES
            ),
        )
        lines.append("")
    return [
        *lines,
        "![BSI relative to hashing against BCI relative to shuffling](reproducing/micro-batch.svg)",
    ]


def pictures(found: Found, plan: Plan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    panels = [
        scatter(
            {rule: _place(found, plan, stream, rule) for rule in RULES},
            EMPHASIS,
            x_title="BCI / shuffling's",
            y=decades("BSI / hashing's", [_LEAST_BSI, 1.0], floor=_LEAST_BSI),
            title=stream,
        )
        for stream in _streams(plan)
        if all(_cell(plan, stream, rule) in found for rule in RULES)
    ]
    if not panels:
        return {}
    said = ["Down: tuples of the blocks more even (BSI). Left: keys of the blocks more even (BCI)."]
    return {"micro-batch": page(panels, title=PICTURE, subtitle=said)}


def _place(found: Found, plan: Plan, stream: str, rule: str) -> tuple[float, float]:
    return (
        max(1e-3, _against(found, plan, stream, rule, "shuffle", "bci")),
        max(_LEAST_BSI, _against(found, plan, stream, rule, "hashing", "bsi")),
    )


def _against(found: Found, plan: Plan, stream: str, rule: str, base: str, name: str) -> float:
    # A rule may have no imbalance at all.
    least = max(1e-9, _median(found, plan, stream, base, name))
    return _median(found, plan, stream, rule, name) / least
