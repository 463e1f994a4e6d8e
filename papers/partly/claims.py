"""The claims of 001's chapter 4, and how they are judged."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from papers.cells.run_plan import RunPlan
from papers.cells.store import MissingError, SectionFigures
from papers.claims import Claim, Outcome
from papers.comparing import lower
from papers.markdown import number
from papers.partly.grid import (
    BY_TIMES,
    PARTLY,
    RIVALS,
    block_cell,
    streams,
    time_cell,
    training_cell,
)

FEWER_SPLITS, LESS_VARIANCE, SHORTER = 0.38, 0.12, 0.7
"""The paper's figures."""
COMPETITIVE = 1.25
"""Our number for "competitive": so many times Prompt's time at most."""
MANY_KEYS = 30_000
"""Our number for "as keys grow": judged from here on."""


def present(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The streams that are measured with the shipped policy. MissingError if there is none."""
    names = [name for name in streams(plan) if block_cell(plan, name, PARTLY) in figures]
    if not names:
        raise MissingError("no stream")
    return names


def values(figures: SectionFigures, plan: RunPlan, stream: str, rule: str, figure: str) -> list[float]:
    """A figure of a rule on a stream, one value per seed."""
    return figures.values(block_cell(plan, stream, rule), figure)


def _against_rivals(figures: SectionFigures, plan: RunPlan, figure: str, rivals: Sequence[str]) -> Outcome:
    checks, phrases = [], []
    for rival in rivals:
        wins = [
            lower(values(figures, plan, stream, PARTLY, figure), values(figures, plan, stream, rival, figure))
            for stream in present(figures, plan)
        ]
        checks += wins
        phrases.append(f"than {rival}'s on {sum(wins)} of {len(wins)} streams")
    return Outcome(f"lower {', '.join(phrases)}", tuple(checks))


def _sizes(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _against_rivals(figures, plan, "bsi", RIVALS)


def _cardinalities(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _against_rivals(figures, plan, "bci", (*RIVALS, "shuffle"))


def _splits(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for stream in present(figures, plan):
        ours, prompt = (values(figures, plan, stream, rule, "split") for rule in (PARTLY, "prompt"))
        checks.append(median(ours) <= (1 - FEWER_SPLITS) * median(prompt) and lower(ours, prompt))
        phrases.append(f"{stream}: {number(median(prompt))} -> {number(median(ours))}")
    return Outcome(f"Prompt -> PartLy: {'; '.join(phrases)}", tuple(checks))


def _variance(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for stream in present(figures, plan):
        for figure in ("reduce", "allocated"):
            ours, prompt = (values(figures, plan, stream, rule, figure) for rule in (BY_TIMES, "prompt"))
            checks.append(median(ours) <= (1 - LESS_VARIANCE) * median(prompt) and lower(ours, prompt))
        phrases.append(f"{stream}: {_changes(figures, plan, stream, BY_TIMES)}")
    return Outcome(f"less by hash / by Algorithm 3: {'; '.join(phrases)}", tuple(checks))


def _changes(figures: SectionFigures, plan: RunPlan, stream: str, rule: str) -> str:
    """How much less the variances of the reduce tasks are than with Prompt."""
    return " / ".join(
        f"{less(figures, plan, stream, rule, figure):.0%}" for figure in ("reduce", "allocated")
    )


def less(figures: SectionFigures, plan: RunPlan, stream: str, rule: str, figure: str) -> float:
    """How much less a median is than Prompt's, as a share of Prompt's."""
    ours, prompt = (median(values(figures, plan, stream, name, figure)) for name in (rule, "prompt"))
    return 1 - ours / prompt if prompt else 0.0


def _runtime_statistics(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for stream in present(figures, plan):
        both = [values(figures, plan, stream, rule, "reduce") for rule in (BY_TIMES, PARTLY)]
        checks.append(lower(*both))
        phrases.append(f"{stream}: {number(median(both[1]))} -> {number(median(both[0]))}")
    return Outcome(f"reduce tasks by hash, us²: {'; '.join(phrases)}", tuple(checks))


def _map_variance(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for stream in present(figures, plan):
        ours, prompt = (values(figures, plan, stream, rule, "map") for rule in (PARTLY, "prompt"))
        checks.append(lower(ours, prompt))
        phrases.append(f"{stream}: {number(median(prompt))} -> {number(median(ours))}")
    return Outcome(f"map tasks, us², Prompt -> PartLy: {'; '.join(phrases)}", tuple(checks))


def _shorter(figures: SectionFigures, plan: RunPlan) -> Outcome:
    curves = [
        list(
            zip(
                *(figures.values(training_cell(plan, which), name) for name in ("steps", "cost")), strict=True
            )
        )
        for which in ("with", "without")
    ]
    # A cost that a training never reaches takes it no steps that could be compared.
    costs = sorted({cost for _, cost in curves[0]})
    spared = max(
        (1 - ours / theirs, cost)
        for cost in costs
        if (ours := _reached(curves[0], cost)) and (theirs := _reached(curves[1], cost))
    )
    ends = [min(cost for _, cost in curve) for curve in curves]
    checks = (spared[0] >= SHORTER, ends[0] <= ends[1])
    return Outcome(
        f"at most {spared[0]:.0%} fewer actions, to a cost of {spared[1]:.3f}; the least cost is"
        f" {ends[0]:.4f} with partial rewards, {ends[1]:.4f} without",
        checks,
    )


def _reached(curve: Sequence[tuple[float, float]], cost: float) -> float | None:
    """The first number of actions after which the cost is so low. None if it never is."""
    return next((steps for steps, at in curve if at <= cost), None)


def _fast(figures: SectionFigures, plan: RunPlan) -> Outcome:
    keys = figures.values(time_cell(plan, "partly"), "keys")
    times = {rule: figures.values(time_cell(plan, rule), "keys ms") for rule in ("partly", "prompt", "cam")}
    at = [place for place, many in enumerate(keys) if many >= MANY_KEYS]
    checks = tuple(
        times["partly"][place] < times[rival][place] for place in at for rival in ("prompt", "cam")
    )
    summary = "; ".join(
        f"{keys[place]:,.0f} keys: " + ", ".join(f"{rule} {number(times[rule][place])}" for rule in times)
        for place in at
    )
    return Outcome(f"CPU ms, {summary}", checks)


def _competitive(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for over in ("zipf", "keys"):
        ours, prompt, cam = (
            figures.values(time_cell(plan, rule), f"{over} ms") for rule in ("partly", "prompt", "cam")
        )
        shares = [mine / its for mine, its in zip(ours, prompt, strict=True)]
        checks += [share <= COMPETITIVE for share in shares]
        checks += [mine < its for mine, its in zip(ours, cam, strict=True)]
        variable = "exponents" if over == "zipf" else "batches of more and more tuples and keys"
        phrases.append(f"over {variable} {min(shares):.2f} to {max(shares):.2f} times Prompt's time")
    return Outcome("; ".join(phrases), tuple(checks))


_UNSEEN = "on every stream that no policy was trained on"
CLAIMS = (
    Claim(
        "001, fig. 4.7",
        "BSI: PartLy's data blocks are more even in tuples than those of Prompt, cAM, PK-5 and hashing.",
        f"BSI lower than the rival's {_UNSEEN}, one part for each rival and stream",
        _sizes,
        measure="counted tuples",
        reason="ours",
        because=(
            "Prompt cuts keys until the data blocks differ by one tuple, and PK-5 decides tuple by tuple. Our"
            " policy weighs tuples against keys and split keys, and leaves some tuples."
        ),
    ),
    Claim(
        "001, fig. 4.7",
        "BCI: PartLy's data blocks are more even in keys than those of all others.",
        f"BCI lower than the rival's {_UNSEEN}, one part for each rival and stream",
        _cardinalities,
        measure="counted copies",
        reason="data",
        because="Where a data block holds few keys, or hardly a key is hot, a rival can be as even.",
        every=True,
    ),
    Claim(
        "001, 4.7.2",
        "PartLy splits 38 % fewer keys. The paper does not say than what: here than Prompt.",
        f"split keys: lower, and the median at most 62 % of Prompt's, {_UNSEEN}",
        _splits,
        measure="counted copies",
        reason="data",
        because=(
            "Where the skew is strong, a few keys have most of the tuples and both rules split these. Where"
            " no key is frequent, neither splits many."
        ),
    ),
    Claim(
        "001, 4.6 (3), 4.7.2",
        "Trained with the times of tasks, PartLy has 12 % less variance of the reduce tasks than Prompt.",
        f"variance of the reduce tasks' times: lower, and the median at most 88 % of Prompt's, {_UNSEEN},"
        " with clusters placed by hash and by Algorithm 3",
        _variance,
        measure="priced from counts",
        reason="measure",
        because=(
            "Times of tasks are not measured: they are priced with the costs of our stages. With these a key"
            " costs 18 times what a fragment costs, so that with hashing the variance is mainly that of"
            " the hash: how many keys each task happens to get. Algorithm 3 places whole keys evenly. Then"
            " fewer split keys show, but not on Zipf 1.2 and 1.5, where the few split keys are hashed. The"
            " paper does not say what a reduce task of its query costs. Its costs would be needed."
        ),
        absent="The policy that was trained by task times is not in docs/partly.",
    ),
    Claim(
        "ours, to 001 4.6 (3)",
        "Training with the times of tasks lowers the variance of the reduce tasks below that of the shipped"
        " policy.",
        f"variance of the reduce tasks' times, by hash: lower {_UNSEEN}",
        _runtime_statistics,
        measure="priced from counts",
        reason="ours",
        because="The shipped policy splits so few keys that there is next to nothing to spare.",
        absent="The policy that was trained by task times is not in docs/partly.",
        own=True,
    ),
    Claim(
        "ours, to 001 4.5.1",
        "PartLy lowers the variance of the map tasks below Prompt's.",
        f"variance of the map tasks' times: lower {_UNSEEN}",
        _map_variance,
        measure="priced from counts",
        reason="data",
        because=(
            "A map task pays for tuples and for keys. Prompt's data blocks differ in keys, ours in tuples."
        ),
        own=True,
    ),
    Claim(
        "001, fig. 4.8a",
        "Partial rewards shorten the training by up to 70 %.",
        "kept trainings of one seed each: to some cost at least 70 % fewer actions with partial rewards, and"
        " in the end a cost that is no higher",
        _shorter,
        measure="kept trainings",
        reason="ours",
        because=(
            "The curves have a point every 0.26 million actions. The lead is lost when the actions grow by a"
            " stage."
        ),
        every=True,
    ),
    Claim(
        "001, fig. 4.8b",
        "PartLy plans a batch in less time than Prompt and cAM as keys grow.",
        f'kept CPU times from {MANY_KEYS:,} keys on (our number for "as keys grow"): below Prompt\'s and'
        " below cAM's",
        _fast,
        measure="kept times",
        reason="ours",
        because="Below that the network takes longer than Prompt's rules.",
    ),
    Claim(
        "001, fig. 4.9",
        "PartLy stays competitive under other skews and batch intervals.",
        "kept CPU times of a batch at each exponent, and of each size (a longer interval brings more tuples"
        " and keys): at most 1.25 times Prompt's (our number for \"competitive\"), and below cAM's",
        _competitive,
        measure="kept times",
        reason="ours",
        because=(
            "Small batches take the network longer than Prompt's rules. The paper's figure is throughput of"
            " its cluster. Here it is the time that planning takes of it."
        ),
    ),
)
