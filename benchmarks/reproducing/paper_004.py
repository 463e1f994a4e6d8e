"""004, "A Holistic View of Stream Partitioning Costs" (PVLDB 10(11), 2017): CM, AM, cAM, LM on real keys.

Its data (TPC-H 10 GB, DEBS 2015, Google cluster) is replaced by what is at hand, see `data`. Windows tumble and every
rule forgets at their end, as its Alg. 1 does; figures are means over the complete windows. What it measures as
throughput and latency is measured here as its causes, tuple imbalance (eq. 1) and aggregation cost (eq. 2).
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.reproducing import charts
from benchmarks.reproducing.claims import Claim, Outcome
from benchmarks.reproducing.data import DATASETS
from benchmarks.reproducing.markdown import figure, number, ratio, table
from benchmarks.reproducing.plan import Cell, Opened, Plan, Stream
from benchmarks.reproducing.routing import tumbled, windows
from benchmarks.reproducing.store import Found, MissingError, Values
from evenflow import metrics
from evenflow.keys import GOLDEN
from evenflow.partitioners import create

if TYPE_CHECKING:
    import altair

NAME = "cardinality"
TITLE = "004: partitioners that know cardinalities"
SYMBOLS = {
    "hashing": "FLD-1",
    "shuffle": "SH-w",
    "pkg": "PK-2",
    "pk5": "PK-5",
    "cm": "CM-2",
    "cm:cardinality=hll": "CM-2-H",
    "lm": "LM-2",
    "lm:cardinality=hll": "LM-2-H",
    "am": "AM-2",
    "am:cardinality=hll": "AM-2-H",
    "am:d=5": "AM-5",
    "cam": "cAM-2",
    "cam:d=5": "cAM-5",
}
"""Our partitioners and their symbols in its table 2."""
WORKERS = (8, 32)
MANY = ("debs-routes", "debs-taxis", "retail-stock", "words", "flights-tailnum")
"""Data with many keys: the papers' hard case. The others have at most 105."""
FEW = ("retail-country", "flights-carrier")
MEMORY_KEYS = 8_100_000
MEMORY_WORKERS = (8, 16, 32)
MEMORY_RULES = ("cm", "am", "lm", "cm:cardinality=hll", "am:cardinality=hll", "lm:cardinality=hll")
PAPER_MEMORY = {
    "cm": (243, 243, 243),
    "am": (122, 122, 122),
    "lm": (243, 243, 243),
    "cm:cardinality=hll": (0.02, 0.04, 0.08),
    "am:cardinality=hll": (0.02, 0.04, 0.08),
    "lm:cardinality=hll": (0.02, 0.04, 0.08),
}
"""Its table 4, MB for 8, 16, 32 workers."""


def _cell(plan: Plan, data: str, n: int, rule: str) -> Cell:
    most = plan.pick(500_000 if data == "words" else 0, 10_000)
    return Cell(NAME, "data", Stream(data, most), n, rule)


def _memory(plan: Plan, rule: str, n: int) -> Cell:
    keys = plan.pick(MEMORY_KEYS, 20_000)
    return Cell(NAME, "memory", Stream("uniform", keys, keys), n, rule)


def cells(plan: Plan) -> list[Cell]:
    """Every data set, and the memory of table 4."""
    data = [_cell(plan, *at) for at in product(DATASETS, WORKERS, SYMBOLS)]
    return data + [_memory(plan, rule, n) for rule, n in product(MEMORY_RULES, MEMORY_WORKERS)]


def measure(cell: Cell, opened: Opened, plan: Plan) -> Values:
    """One value per seed; memory is the same for every seed and measured once."""
    if cell.what == "memory":
        return {"megabytes": [_megabytes(cell, plan)]}
    stream = opened.at()
    window_ms = DATASETS[cell.stream.kind].window_ms
    slices = list(windows(stream, window_ms))
    found: Values = {name: [] for name in ("imbalance", "most_above", "ksr", "cardinality")}
    found["keys"] = [float(np.mean([metrics.distinct_keys(stream.codes[rows]) for rows in slices]))]
    found["tuples"] = [float(np.mean([rows.stop - rows.start for rows in slices]))]
    found["windows"] = [float(len(slices))]
    for seed in plan.seeds:
        workers = tumbled(stream, cell.partitioner, workers=cell.workers, seed=seed, window_ms=window_ms)
        each = [_window(workers[rows], stream.codes[rows], cell.workers) for rows in slices]
        imbalance, most_above, ksr, cardinality = np.array(each).T
        found["imbalance"].append(float(imbalance.mean()))
        found["most_above"].append(float(most_above.max()))
        found["ksr"].append(float(ksr.mean()))
        found["cardinality"].append(float(cardinality.mean()))
    return found


def _window(workers: np.ndarray, codes: np.ndarray, n: int) -> tuple[float, float, float, float]:
    loads = metrics.worker_loads(workers, n)
    cardinalities = metrics.worker_cardinalities(workers, codes, n)
    return (
        metrics.imbalance(loads),
        metrics.absolute_imbalance(loads),
        float(cardinalities.sum()) / metrics.distinct_keys(codes),
        float(cardinalities.max() / cardinalities.mean() - 1),
    )


def _megabytes(cell: Cell, plan: Plan) -> float:
    """State after every key of the stream's law has come, for CM and LM twice, so that both candidates hold it."""
    name, _, option = cell.partitioner.partition(":")
    options = dict([option.split("=")]) if option else {}
    rule = create(name, workers=cell.workers, seed=plan.seeds[0], mode="cumulative", **options)
    keys = np.arange(1, cell.stream.keys + 1, dtype=np.uint64) * GOLDEN
    times = np.zeros(len(keys), np.int64)
    for _ in range(1 if name == "am" else 2):
        rule.assign(keys, times)
    return rule.observe().state_bytes / 1e6


def _present(found: Found, plan: Plan, data: tuple[str, ...]) -> list[str]:
    there = [
        name
        for name in data
        if all(_cell(plan, name, n, rule) in found for n, rule in product(WORKERS, SYMBOLS))
    ]
    if not there:
        raise MissingError("no data")
    return there


def _median(found: Found, plan: Plan, data: str, n: int, rule: str, name: str) -> float:
    return found.median(_cell(plan, data, n, rule), name)


def _whole_keys(found: Found, plan: Plan) -> Outcome:
    most = {
        rule: max(
            max(found.values(_cell(plan, data, n, rule), "ksr"))
            for data, n in product(_present(found, plan, tuple(DATASETS)), WORKERS)
        )
        for rule in ("hashing", "am", "am:d=5", "cam", "cam:d=5")
    }
    return Outcome(
        f"Gamma / distinct keys at most {ratio(max(most.values()))}",
        tuple(value == 1 for value in most.values()),
    )


def _split_costs(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for data in _present(found, plan, MANY):
        at = {
            rule: _median(found, plan, data, 32, rule, "ksr")
            for rule in ("shuffle", "pk5", "pkg", "cm", "lm")
        }
        held.append(at["shuffle"] >= at["pk5"] >= at["pkg"] > 1.05 and at["cm"] > 1.01 and at["lm"] > 1.05)
        said.append(f"{data}: " + ", ".join(f"{SYMBOLS[rule]} {value:.2f}" for rule, value in at.items()))
    return Outcome("; ".join(said), tuple(held))


def _relative(found: Found, plan: Plan, data: str, n: int, rule: str, name: str = "imbalance") -> float:
    return _median(found, plan, data, n, rule, name) / _median(found, plan, data, n, "hashing", name)


def _relative_outcome(found: Found, plan: Plan, rules: tuple[str, ...], bound: float) -> Outcome:
    held, said = [], []
    for data in _present(found, plan, MANY):
        for n in WORKERS:
            at = {rule: _relative(found, plan, data, n, rule) for rule in rules}
            held += [value < bound for value in at.values()]
            said.append(f"{data}, n = {n}: " + ", ".join(f"{SYMBOLS[r]} {v:.2f}" for r, v in at.items()))
    return Outcome("; ".join(said), tuple(held))


def _cam_below_hashing(found: Found, plan: Plan) -> Outcome:
    return _relative_outcome(found, plan, ("am", "cam"), 1.0)


def _five_better_than_two(found: Found, plan: Plan) -> Outcome:
    held: dict[str, list[bool]] = {"am": [], "cam": []}
    said = []
    for data, n in product(_present(found, plan, MANY), WORKERS):
        for two, parts in held.items():
            a, b = (_relative(found, plan, data, n, rule) for rule in (two, f"{two}:d=5"))
            parts.append(b < a)
            said.append(f"{data}, n = {n}: {SYMBOLS[two]} {a:.2f}, {SYMBOLS[f'{two}:d=5']} {b:.2f}")
    count = ", ".join(
        f"{SYMBOLS[f'{two}:d=5']} in {sum(parts)} of {len(parts)}" for two, parts in held.items()
    )
    return Outcome(f"lower for {count}; relative to FLD-1: {'; '.join(said)}", (*held["am"], *held["cam"]))


def _sketch_between(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for data, n in product(_present(found, plan, MANY), WORKERS):
        exact, sketch = (_relative(found, plan, data, n, rule) for rule in ("am", "am:cardinality=hll"))
        held.append(exact - 0.02 <= sketch < 1.02)
        said.append(f"{data}, n = {n}: {sketch:.2f} (AM-2 {exact:.2f})")
    return Outcome("; ".join(said), tuple(held))


def _sketch_keeps_keys(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for data, n in product(_present(found, plan, MANY), WORKERS):
        copies = _median(found, plan, data, n, "am:cardinality=hll", "ksr")
        held.append(copies <= 1.01)
        said.append(f"{data}, n = {n}: {ratio(copies)}")
    return Outcome(f"KSR {'; '.join(said)}", tuple(held))


def _cm_for_keys(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for data, n in product(_present(found, plan, MANY), WORKERS):
        at = {
            rule: [_median(found, plan, data, n, rule, what) for what in ("cardinality", "imbalance")]
            for rule in ("cm", "pkg")
        }
        held += [at["cm"][0] < at["pkg"][0], at["cm"][1] > at["pkg"][1]]
        said.append(
            f"{data}, n = {n}: keys {at['cm'][0]:.1%} against {at['pkg'][0]:.1%}, "
            f"tuples {number(at['cm'][1])} against {number(at['pkg'][1])}"
        )
    return Outcome(f"CM-2 against PK-2: {'; '.join(said)}", tuple(held))


def _lm_between(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for data, n in product(_present(found, plan, MANY), WORKERS):
        by_rule = {
            rule: [_median(found, plan, data, n, rule, what) for what in ("imbalance", "cardinality")]
            for rule in ("lm", "cm", "pkg")
        }
        held += [by_rule["lm"][0] < by_rule["cm"][0], by_rule["lm"][1] < by_rule["pkg"][1]]
        said.append(f"{data}, n = {n}: tuples {number(by_rule['lm'][0])}, keys {by_rule['lm'][1]:.1%}")
    return Outcome("; ".join(said), tuple(held))


def _shuffle_within_one(found: Found, plan: Plan) -> Outcome:
    most = max(
        max(found.values(_cell(plan, data, n, "shuffle"), "most_above"))
        for data, n in product(_present(found, plan, tuple(DATASETS)), WORKERS)
    )
    return Outcome(f"at most {most:.2f} tuples above the mean in any window", (most <= 1,))


def _few_groups(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for data, n in product(_present(found, plan, FEW), WORKERS):
        tuples = found.median(_cell(plan, data, n, "shuffle"), "tuples")
        keys = found.median(_cell(plan, data, n, "shuffle"), "keys")
        cost = _median(found, plan, data, n, "shuffle", "ksr") * keys / tuples
        whole = {rule: _median(found, plan, data, n, rule, "imbalance") for rule in ("hashing", "am", "cam")}
        held.append(
            cost < 0.2 and min(whole.values()) > 10 * _median(found, plan, data, n, "shuffle", "imbalance")
        )
        said.append(
            f"{data}, n = {n}: SH-w {cost:.1%} partial results a tuple; FLD-1, AM-2, cAM-2 put "
            f"{min(whole.values()):.0%} or more above the mean on one worker"
        )
    return Outcome("; ".join(said), tuple(held))


def _memory_small(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for rule, n in product(("cm", "am", "lm"), MEMORY_WORKERS):
        exact, sketch = (
            found.median(_memory(plan, name, n), "megabytes") for name in (rule, f"{rule}:cardinality=hll")
        )
        held.append(sketch * 100 < exact)
        if n == MEMORY_WORKERS[-1]:
            said.append(f"{rule}: {exact:,.0f} MB exact, {sketch:.3f} MB sketched (n = {n})")
    return Outcome("; ".join(said), tuple(held))


CLAIMS = (
    Claim(
        "004, 4.2, 6.1.3",
        "AM and cAM split no key: aggregation costs what it costs hashing.",
        "Gamma equals the number of distinct keys in every window, for every data set and seed",
        _whole_keys,
    ),
    Claim(
        "004, 6.1.2, 7",
        "SH, PK, CM and LM pay for splitting where there are many groups.",
        "n = 32: KSR of SH-w >= PK-5 >= PK-2 > 1.05, LM-2 > 1.05, CM-2 > 1.01",
        _split_costs,
        because="Where hardly a key comes twice in a window (a taxi in five minutes) there is nothing to split.",
    ),
    Claim(
        "004, fig. 7, 9",
        "AM-2 and cAM-2 have lower tuple imbalance than FLD-1 with many groups.",
        "median imbalance relative to hashing's below 1",
        _cam_below_hashing,
        because="AM balances keys, not tuples: where few keys dominate, an even number of keys helps little, and the "
        "hottest key alone sets the imbalance.",
    ),
    Claim(
        "004, fig. 7, 6.1.2",
        "Five candidates are better than two (AM-5, cAM-5).",
        "lower median imbalance than with two",
        _five_better_than_two,
        because="AM chooses by the number of keys: more candidates make that more even, not the tuples.",
        note="The public code for five candidates tests each option with its own hash but stores only the last (F4), "
        "so its AM-5 and cAM-5 split keys (2.2 and 3.3 copies); the paper's bars may hold that gain.",
    ),
    Claim(
        "004, fig. 7, 6.1.2",
        "AM-2-H lies between FLD-1 and AM-2 in imbalance.",
        "relative to hashing's: no more than 0.02 below AM-2's, below 1.02",
        _sketch_between,
        because="The public sketches are not cleared between windows (F5): after the first one every key looks known "
        "at its first candidate and AM-2-H becomes hashing.",
    ),
    Claim(
        "004, 6.1.3",
        'AM-2-H does what AM-2 does: the optimistic test for "known here" errs rarely.',
        "KSR at most 1.01",
        _sketch_keeps_keys,
        because="A new key looks known where it would change no register. That never splits a key by itself, but a key "
        "that lives with its second candidate is stolen when the first one begins to answer yes.",
    ),
    Claim(
        "004, 4.1",
        "CM has low cardinality imbalance, at the price of tuple imbalance (against PK-2).",
        "lower cardinality imbalance, higher tuple imbalance",
        _cm_for_keys,
    ),
    Claim(
        "004, 4.3",
        "LM balances tuples and keys at once.",
        "lower tuple imbalance than CM-2 and lower cardinality imbalance than PK-2",
        _lm_between,
    ),
    Claim(
        "004, 2.3",
        "Shuffling has a tuple imbalance of at most 1.",
        "max - mean at most 1 in every window",
        _shuffle_within_one,
    ),
    Claim(
        "004, 7 (selection rule)",
        "With few groups and many tuples per worker, shuffling is the choice.",
        "its partial results are less than a fifth of the tuples, and the rules without splitting have over ten times its "
        "imbalance",
        _few_groups,
    ),
    Claim(
        "004, table 4",
        "HyperLogLog needs a tiny part of the memory of exact sets.",
        "8.1 million keys: less than a hundredth",
        _memory_small,
    ),
)


def text(found: Found, plan: Plan) -> list[str]:
    """Set-up and tables."""
    lines = [
        "Windows tumble, and every rule forgets at their end; figures are means over complete windows. Keys and tuples are "
        "those of a window (the DEBS files hold 36 minutes, so theirs are five). Data that is "
        "not in the data folder is left out (a dash); the flights are always there.",
        "",
    ]
    lines += table(
        ["data", "tuples", "keys", "windows"],
        (
            [
                f"{data} ({DATASETS[data].what})",
                *(
                    figure(found, _cell(plan, data, 8, "hashing"), name)
                    for name in ("tuples", "keys", "windows")
                ),
            ]
            for data in DATASETS
        ),
    )
    for what, title, how in (
        ("imbalance", "Tuple imbalance, (max - mean) / tuples of the window", number),
        ("ksr", "Gamma / distinct keys", ratio),
        ("cardinality", "Cardinality imbalance, max / mean - 1", number),
    ):
        lines += ["", f"{title}:", ""]
        lines += table(
            ["rule", *(f"{data}, n = {n}" for data, n in product(_there(found, plan), WORKERS))],
            (
                [f"{symbol} (`{rule}`)"]
                + [
                    _middle(found, _cell(plan, data, n, rule), what, how)
                    for data, n in product(_there(found, plan), WORKERS)
                ]
                for rule, symbol in SYMBOLS.items()
            ),
        )
    lines += ["", "Spread over the seeds, n = 32 (tuple imbalance):", ""]
    lines += table(
        ["rule", *_there(found, plan)],
        (
            [
                symbol,
                *(figure(found, _cell(plan, data, 32, rule), "imbalance") for data in _there(found, plan)),
            ]
            for rule, symbol in SYMBOLS.items()
        ),
    )
    keys = plan.pick(MEMORY_KEYS, 20_000)
    lines += ["", "![tuple imbalance against aggregation cost](reproducing/cardinality.svg)", ""]
    lines += [f"Table 4: MB of state after {keys:,} keys, beside the paper's (8.1 million keys).", ""]
    lines += table(
        ["rule", *(f"n = {n}" for n in MEMORY_WORKERS), "paper"],
        (
            [
                SYMBOLS[rule],
                *(figure(found, _memory(plan, rule, n), "megabytes") for n in MEMORY_WORKERS),
                " / ".join(f"{value:g}" for value in PAPER_MEMORY[rule]),
            ]
            for rule in MEMORY_RULES
        ),
    )
    return [
        *lines,
        "",
        "Ours takes a byte per register where the paper packs five bits; our exact sets also know when each (key, worker) "
        "pair came last, so that a window can slide, and grow by doubling.",
    ]


def _there(found: Found, plan: Plan) -> list[str]:
    return [data for data in DATASETS if _cell(plan, data, 8, "hashing") in found]


def _middle(found: Found, cell: Cell, name: str, how: object) -> str:
    return how(found.median(cell, name)) if cell in found and callable(how) else "-"


def pictures(found: Found, plan: Plan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    panels = [
        charts.scatter(
            [
                {
                    "rule": symbol,
                    "copies": _median(found, plan, data, 32, rule, "ksr"),
                    "imbalance": _median(found, plan, data, 32, rule, "imbalance"),
                }
                for rule, symbol in SYMBOLS.items()
                if _cell(plan, data, 32, rule) in found
            ],
            x="copies",
            x_title="Gamma / distinct keys",
            y="imbalance",
            y_title="tuple imbalance",
            colour="rule",
            title=f"{data}, n = 32",
        )
        for data in ("debs-routes", "words", "retail-stock", "flights-tailnum")
        if _cell(plan, data, 32, "hashing") in found
    ]
    return {"cardinality": charts.grid(panels)} if panels else {}
