"""What 004 says, and how its claims are judged."""

from __future__ import annotations

from itertools import product
from statistics import median

from papers.cells.run_plan import RunPlan
from papers.cells.store import MissingError, SectionFigures
from papers.claims import Claim, Outcome
from papers.comparing import lower, no_higher, same
from papers.drawn_streams import TPCH_Q1, TPCH_Q3
from papers.markdown import number, ratio
from papers.paper_004.grid import (
    DATA,
    MEMORY_WORKERS,
    SYMBOLS,
    WORKERS,
    data_cell,
    memory_cell,
)

MANY = (TPCH_Q3, "debs-routes", "debs-taxis", "retail-stock", "words", "flights-tailnum")
"""Data with many keys: the paper's hard case. All other data has at most 105 keys."""
FEW = (TPCH_Q1, "retail-country", "flights-carrier")
"""Data with few keys."""
SCARCE = "debs-taxis"
"""Data whose groups hardly repeat in a window."""
ENOUGH = 100
"""A stream is judged only where a worker gets this many tuples of a window on average."""
WHOLE = ("hashing", "am", "am:d=5", "cam", "cam:d=5")
"""Rules that split no key."""


def _present(figures: SectionFigures, plan: RunPlan, data: tuple[str, ...]) -> list[str]:
    """The streams of `data` that are measured in full. MissingError if none is."""
    measured_data = [
        name
        for name in data
        if all(data_cell(plan, name, n, rule) in figures for n, rule in product(WORKERS, SYMBOLS))
    ]
    if not measured_data:
        raise MissingError("no data")
    return measured_data


def judged_streams(
    figures: SectionFigures, plan: RunPlan, data: tuple[str, ...], workers: tuple[int, ...] = WORKERS
) -> list[tuple[str, int]]:
    """Pairs (stream, n) in which each of the n workers gets enough tuples, see `ENOUGH`."""
    return [
        (name, n)
        for name, n in product(_present(figures, plan, data), workers)
        if figures.median(data_cell(plan, name, n, "hashing"), "tuples") >= ENOUGH * n
    ]


def _median(figures: SectionFigures, plan: RunPlan, data: str, n: int, rule: str, name: str) -> float:
    return figures.median(data_cell(plan, data, n, rule), name)


def _values(
    figures: SectionFigures, plan: RunPlan, data: str, n: int, rule: str, name: str = "imbalance"
) -> list[float]:
    return figures.values(data_cell(plan, data, n, rule), name)


def _whole_keys(figures: SectionFigures, plan: RunPlan) -> Outcome:
    most = {
        rule: max(
            max(figures.values(data_cell(plan, data, n, rule), "ksr"))
            for data, n in product(_present(figures, plan, DATA), WORKERS)
        )
        for rule in WHOLE
    }
    return Outcome(
        f"Gamma / distinct keys at most {ratio(max(most.values()))}",
        tuple(value == 1 for value in most.values()),
    )


def _split_costs(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for data, n in judged_streams(figures, plan, MANY, WORKERS[-1:]):
        at = {
            rule: _median(figures, plan, data, n, rule, "ksr")
            for rule in ("shuffle", "pk5", "pkg", "cm", "lm")
        }
        checks += [value > 1.05 for value in at.values()]
        phrases.append(f"{data}: " + ", ".join(f"{SYMBOLS[rule]} {value:.2f}" for rule, value in at.items()))
    return Outcome("; ".join(phrases), tuple(checks))


def _relative(
    figures: SectionFigures, plan: RunPlan, data: str, n: int, rule: str, name: str = "imbalance"
) -> float:
    return _median(figures, plan, data, n, rule, name) / _median(figures, plan, data, n, "hashing", name)


def _cam_below_hashing(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for data, n in judged_streams(figures, plan, MANY):
        at = {rule: _relative(figures, plan, data, n, rule) for rule in ("am", "cam")}
        hashing = _values(figures, plan, data, n, "hashing")
        checks += [lower(_values(figures, plan, data, n, rule), hashing) for rule in at]
        phrases.append(f"{data}, n = {n}: " + ", ".join(f"{SYMBOLS[r]} {v:.2f}" for r, v in at.items()))
    return Outcome(f"relative to FLD-1: {'; '.join(phrases)}", tuple(checks))


def _five_candidates(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for data, n in judged_streams(figures, plan, MANY):
        hashing = _values(figures, plan, data, n, "hashing")
        for two in ("am", "cam"):
            a, b = (_relative(figures, plan, data, n, rule) for rule in (two, f"{two}:d=5"))
            five = _values(figures, plan, data, n, f"{two}:d=5")
            checks += [lower(five, hashing), no_higher(five, _values(figures, plan, data, n, two))]
            phrases.append(f"{data}, n = {n}: {SYMBOLS[two]} {a:.2f}, {SYMBOLS[f'{two}:d=5']} {b:.2f}")
    return Outcome(f"relative to FLD-1: {'; '.join(phrases)}", tuple(checks))


def _sketch_between(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for data, n in judged_streams(figures, plan, MANY):
        exact, sketch = (_relative(figures, plan, data, n, rule) for rule in ("am", "am:cardinality=hll"))
        rules = ("am", "am:cardinality=hll", "hashing")
        am, hll, hashing = (_values(figures, plan, data, n, rule) for rule in rules)
        checks += [no_higher(am, hll), lower(hll, hashing)]
        phrases.append(f"{data}, n = {n}: {sketch:.2f} (AM-2 {exact:.2f})")
    return Outcome("; ".join(phrases), tuple(checks))


def _sketch_keeps_keys(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for data, n in judged_streams(figures, plan, MANY):
        copies = _median(figures, plan, data, n, "am:cardinality=hll", "ksr")
        checks.append(copies <= 1.01)
        phrases.append(f"{data}, n = {n}: {ratio(copies)}")
    return Outcome(f"KSR {'; '.join(phrases)}", tuple(checks))


def _cm_for_keys(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for data, n in judged_streams(figures, plan, MANY):
        at = {
            rule: [_median(figures, plan, data, n, rule, name) for name in ("cardinality", "imbalance")]
            for rule in ("cm", "pkg")
        }
        checks.append(
            lower(*(_values(figures, plan, data, n, rule, "cardinality") for rule in ("cm", "pkg")))
        )
        checks.append(lower(*(_values(figures, plan, data, n, rule) for rule in ("pkg", "cm"))))
        phrases.append(
            f"{data}, n = {n}: keys {at['cm'][0]:.1%} against {at['pkg'][0]:.1%}, "
            f"tuples {number(at['cm'][1])} against {number(at['pkg'][1])}"
        )
    return Outcome(f"CM-2 against PK-2: {'; '.join(phrases)}", tuple(checks))


def _lm_between(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for data, n in judged_streams(figures, plan, MANY):
        checks.append(lower(*(_values(figures, plan, data, n, rule) for rule in ("lm", "cm"))))
        checks.append(
            lower(*(_values(figures, plan, data, n, rule, "cardinality") for rule in ("lm", "pkg")))
        )
        tuples, keys = (_median(figures, plan, data, n, "lm", name) for name in ("imbalance", "cardinality"))
        phrases.append(f"{data}, n = {n}: tuples {number(tuples)}, keys {keys:.1%}")
    return Outcome("; ".join(phrases), tuple(checks))


def _shuffle_within_one(figures: SectionFigures, plan: RunPlan) -> Outcome:
    most = max(
        max(figures.values(data_cell(plan, data, n, "shuffle"), "most_above"))
        for data, n in product(_present(figures, plan, DATA), WORKERS)
    )
    return Outcome(f"at most {most:.2f} tuples above the mean in any window", (most <= 1,))


def _few_groups(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for data, n in judged_streams(figures, plan, FEW):
        tuples = figures.median(data_cell(plan, data, n, "shuffle"), "tuples")
        keys = figures.median(data_cell(plan, data, n, "shuffle"), "keys")
        cost = _median(figures, plan, data, n, "shuffle", "ksr") * keys / tuples
        whole = {
            rule: _median(figures, plan, data, n, rule, "imbalance") for rule in ("hashing", "am", "cam")
        }
        shuffled = _median(figures, plan, data, n, "shuffle", "imbalance")
        checks += [cost < 0.2, min(whole.values()) > 10 * shuffled]
        phrases.append(
            f"{data}, n = {n}: SH-w {cost:.1%} partial results a tuple; FLD-1, AM-2, cAM-2 put "
            f"{min(whole.values()):.0%} or more above the mean on one worker"
        )
    return Outcome("; ".join(phrases), tuple(checks))


def _memory_small(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for rule, n in product(("cm", "am", "lm"), MEMORY_WORKERS):
        exact, sketch = (
            figures.median(memory_cell(plan, name, n), "megabytes")
            for name in (rule, f"{rule}:cardinality=hll")
        )
        checks.append(sketch * 100 < exact)
        if n == MEMORY_WORKERS[-1]:
            phrases.append(f"{rule}: {exact:,.0f} MB exact, {sketch:.3f} MB sketched (n = {n})")
    return Outcome("; ".join(phrases), tuple(checks))


def _query_1(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for n in WORKERS:
        _present(figures, plan, (TPCH_Q1,))
        at = {rule: _values(figures, plan, TPCH_Q1, n, rule) for rule in SYMBOLS}
        others = [values for rule, values in at.items() if rule not in ("shuffle", "pk5")]
        checks += [lower(at["shuffle"], values) for values in (at["pk5"], *others)]
        checks += [lower(at["pk5"], values) for values in others]
        best = min(map(median, others))
        shown = ", ".join(f"{SYMBOLS[rule]} {number(median(at[rule]))}" for rule in ("shuffle", "pk5"))
        phrases.append(f"n = {n}: {shown}, the best of the others {number(best)}")
    return Outcome("; ".join(phrases), tuple(checks))


def _do_not_scale(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    _present(figures, plan, (TPCH_Q1,))
    for rule in (*WHOLE, "shuffle"):
        # Imbalance is the fullest worker's share less 1/n.
        few, many = (_median(figures, plan, TPCH_Q1, n, rule, "imbalance") + 1 / n for n in WORKERS)
        checks.append(few / many >= 2 if rule == "shuffle" else few / many <= 1.1)
        phrases.append(f"{SYMBOLS[rule]} {few:.1%} -> {many:.1%}")
    return Outcome(f"fullest worker's share, n = 8 -> 32: {', '.join(phrases)}", tuple(checks))


def _cost_grows(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for data in _present(figures, plan, FEW):
        at = {
            rule: [_values(figures, plan, data, n, rule, "ksr") for n in WORKERS]
            for rule in ("shuffle", "pkg", "am", "cam")
        }
        checks += [lower(*at[rule]) for rule in ("shuffle", "pkg")]
        checks += [same(at[rule]) for rule in ("am", "cam")]
        shown = (f"{SYMBOLS[rule]} {median(a):.2f} -> {median(b):.2f}" for rule, (a, b) in at.items())
        phrases.append(f"{data}: {', '.join(shown)}")
    return Outcome(f"KSR, n = 8 -> 32: {'; '.join(phrases)}", tuple(checks))


def _cheap_splitting(figures: SectionFigures, plan: RunPlan) -> Outcome:
    _present(figures, plan, (SCARCE,))
    at = {
        rule: [_values(figures, plan, SCARCE, n, rule, "ksr") for n in WORKERS]
        for rule in ("shuffle", "pkg", "pk5", "cm", "lm")
    }
    checks = [median(values) <= 1.05 for rule in at for values in at[rule] if rule != "shuffle"]
    shown = ", ".join(f"{SYMBOLS[rule]} {median(a):.4f} -> {median(b):.4f}" for rule, (a, b) in at.items())
    return Outcome(f"KSR, n = 8 -> 32: {shown}", (*checks, lower(*at["shuffle"])))


CLAIMS = (
    Claim(
        "004, 4.2, 6.1.3",
        "AM and cAM split no key: aggregation costs what it costs hashing.",
        "Gamma equals the number of distinct keys in every window, for every data set and seed",
        _whole_keys,
        measure="counted copies",
        every=True,
    ),
    Claim(
        "004, 6.1.2, 7",
        "SH, PK, CM and LM pay for splitting where there are many groups.",
        "n = 32: KSR of each of the five above 1.05, for each data set with many groups",
        _split_costs,
        measure="counted copies",
        reason="data",
        because="Where hardly any key comes twice in a window, there is nothing to split.",
    ),
    Claim(
        "004, fig. 7, 9",
        "AM-2 and cAM-2 have lower tuple imbalance than FLD-1 with many groups.",
        "imbalance lower than hashing's",
        _cam_below_hashing,
        measure="counted tuples",
        reason="data",
        because=(
            "AM balances keys, not tuples. Where few keys dominate, an even number of keys helps little, and"
            " the hottest key alone sets the imbalance. On words AM-2's gain lies inside the spread over the"
            " seeds."
        ),
    ),
    Claim(
        "004, fig. 7, 6.1.2",
        "With five candidates AM and cAM are better than FLD-1, and no worse than with two.",
        "two parts a setting: imbalance lower than hashing's, and no higher than with two candidates",
        _five_candidates,
        measure="counted tuples",
        reason="data",
        because=(
            "AM chooses by the number of keys. On words AM-5's gain over hashing lies inside the spread over"
            " the seeds."
        ),
        note=(
            "The public code for five candidates tests each candidate with a hash of its own but stores only"
            " the last one (F4). So its AM-5 and cAM-5 split keys (2.2 and 3.3 copies). The paper's bars may"
            " include that gain."
        ),
    ),
    Claim(
        "004, fig. 7, 6.1.2",
        "AM-2-H lies between FLD-1 and AM-2 in imbalance.",
        "two parts a setting: AM-2's imbalance is no higher than AM-2-H's, and that is lower than hashing's",
        _sketch_between,
        measure="counted tuples",
        reason="data",
        because=(
            "Two of the three parts are those of words, where AM-2 itself does not differ from hashing. The"
            " third is drawn TPC-H with 8 workers, where the error of the sketch (1.6 % of the keys with the"
            " paper's 4,096 registers) is larger than the imbalance of hashing. The public code does not"
            " clear its sketches between windows (F5): after the first window every key looks known at its"
            " first candidate, and AM-2-H becomes hashing. The paper's words do not tell whether its bars"
            " were made so."
        ),
    ),
    Claim(
        "004, 6.1.3",
        'AM-2-H does what AM-2 does: the optimistic test for "known here" errs rarely.',
        'KSR at most 1.01 (our number for "rarely"; AM-2\'s is 1)',
        _sketch_keeps_keys,
        measure="counted copies",
        because=(
            "A new key looks known where it would change no register. That never splits a key by itself. But"
            " a key that lives with its second candidate moves once the first candidate begins to look as if"
            " it knew the key."
        ),
    ),
    Claim(
        "004, 4.1",
        "CM has low cardinality imbalance, at the price of tuple imbalance (against PK-2).",
        "two parts a setting: lower cardinality imbalance; higher tuple imbalance",
        _cm_for_keys,
        measure="counted tuples and copies",
        reason="data",
        because="Where hardly any key comes twice in a window, a tuple is a key, and the rules do the same.",
    ),
    Claim(
        "004, 4.3",
        "LM balances tuples and keys at once.",
        "two parts a setting: lower tuple imbalance than CM-2; lower cardinality imbalance than PK-2",
        _lm_between,
        measure="counted tuples and copies",
        reason="data",
        because=(
            "LM evens out the sum of tuples and keys, so a worker may have more tuples and fewer keys, or the"
            " other way round. On TPC-H the rows of an order come one after another, and PK-2 shares them out"
            " between two workers."
        ),
    ),
    Claim(
        "004, 2.3",
        "Shuffling has a tuple imbalance of at most 1.",
        "max - mean at most 1 in every window, for every data set and seed",
        _shuffle_within_one,
        measure="counted tuples",
        every=True,
    ),
    Claim(
        "004, 7 (selection rule)",
        "With few groups and many tuples per worker, shuffling is the choice.",
        "its partial results are less than a fifth of the tuples, and the rules without splitting have over"
        " ten times its imbalance",
        _few_groups,
        measure="counted tuples and copies",
    ),
    Claim(
        "004, fig. 5, 6.1.1",
        "With four groups shuffling is the most even, and PK-5 is next.",
        "drawn TPC-H query 1: shuffling's imbalance lower than every other rule's, PK-5's lower than that of"
        " every rule but shuffling",
        _query_1,
        measure="counted tuples",
        reason="data",
        because=(
            "The groups are drawn by TPC-H's rules. With four groups a seed's hash functions decide much."
        ),
    ),
    Claim(
        "004, fig. 5, 6.1.1",
        "With four groups the rules that keep a key whole do not scale.",
        "drawn TPC-H query 1, from 8 to 32 workers: the share of the fullest worker falls by at most a tenth"
        " for FLD-1, AM and cAM, with two candidates and with five; it halves at least for shuffling",
        _do_not_scale,
        measure="counted tuples",
        reason="data",
    ),
    Claim(
        "004, fig. 11, 6.2.1",
        "With few groups the aggregation cost of shuffling and PK-2 grows with the workers, that of AM and"
        " cAM stays.",
        "KSR, 8 against 32 workers, on each stream with few groups: lower for shuffling and PK-2, no"
        " difference for AM and cAM",
        _cost_grows,
        measure="counted copies",
        reason="data",
        because=(
            "PK-2 keeps at most two copies of a key. With so few keys a seed's collisions decide how many"
            " keys have two."
        ),
        note="The paper's figure is the share of the time that aggregation takes.",
    ),
    Claim(
        "004, fig. 12, 6.2.2",
        "Where groups hardly repeat in a window, splitting costs rules with several choices little;"
        " shuffling's cost grows with the workers.",
        'debs-taxis: KSR of PK-2, PK-5, CM-2 and LM-2 at most 1.05 (our number for "little") with 8 and with'
        " 32 workers; shuffling's lower with 8 than with 32",
        _cheap_splitting,
        measure="counted copies",
        reason="data",
        because=(
            "In nearly every window a taxi comes only once, so even shuffling has hardly anything to split."
        ),
        absent="The taxis are not in the data folder.",
        note="The paper's figure is window latency on the Google trace.",
    ),
    Claim(
        "004, table 4",
        "HyperLogLog needs a tiny part of the memory of exact sets.",
        '8.1 million keys: less than a hundredth (our number for "tiny")',
        _memory_small,
        measure="bytes of state",
    ),
)
