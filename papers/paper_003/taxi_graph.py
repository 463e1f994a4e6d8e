"""Figure 10 of 003, simulated: the application of figure 4, with an agent for each of its seven operators.

The testbed is not at hand. `ElasticGraph` plays the application with what table 2 gives: up to 8 units, 2,000
ms, steps of 60 s, 4,500 tuples/s, equal weights. Not given are the speeds. The load is a share of what 8
units of an aggregator do. The other operators are twice as fast, so that only the aggregators can be
bottlenecks, as the paper says. It scales these two. Here all seven have an agent, as in its Alg. 1 and 2.

A latency is the bound of II.B for the longest path: the sum of what each operator takes for 95 of 100 tuples.
The paper cuts latencies off at 5 s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from statistics import median

import numpy as np

from evenflow.elasticity.learning.graph_agents import GraphAgents
from evenflow.elasticity.learning.pretraining import Lessons
from evenflow.elasticity.simulated.arrivals import Poisson
from evenflow.elasticity.simulated.graph import ElasticGraph
from evenflow.elasticity.simulated.objective import Form
from evenflow.elasticity.simulated.operators import TAXI_GRAPH, OperatorGraph
from evenflow.elasticity.simulated.queues import QueueModel, latency_bound, service_rate
from papers.cells.run_plan import Cell, RunPlan, Stream, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.comparing import lower
from papers.markdown import figure, number, table
from papers.paper_003.grid import NAME

KMAX = 8
RATE = 4_500.0
"""Tuples/s. The paper's."""
STEP_S = 60.0
LMAX_S = 2.0
CUT_S = 5.0
GOAL = -0.3
STEPS = 30
"""Half an hour."""
SAMPLES = 2_000
"""Of the training of each agent. The paper has 10,000, for up to 64 units."""
SHARES = (0.4, 0.6, 0.8)
"""The load as a share of what all units of an aggregator do. The paper does not say it."""
POLICIES = {"pretrained": "MBLinUCB", "untrained": "LinUCB"}
OURS = "ours"
"""As `mblinucb` by its defaults: half and twice the load and queues in training, alpha 0.3, `backlog`."""
NAMES = POLICIES | {OURS: "MBLinUCB, ours"}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How agents learn. The defaults are the paper's."""

    trained: bool = True
    """Whether they are trained before they decide (Alg. 1)."""
    breadth: float = 1.0
    """Of the loads in training, as in `Lessons`."""
    alpha: float = 1.0
    """Weight of exploring."""
    objective: Form = "paper"
    """Form of the reward."""


KINDS = {
    "pretrained": Kind(),
    "untrained": Kind(trained=False),
    OURS: Kind(breadth=2.0, alpha=0.3, objective="backlog"),
    "pretrained-breadth": Kind(breadth=2.0),
    "pretrained-backlog": Kind(objective="backlog"),
    "pretrained-alpha": Kind(alpha=0.3),
    "untrained-backlog": Kind(trained=False, objective="backlog"),
}
VARIANTS = {
    "pretrained-breadth": "MBLinUCB, trained with half and twice the load and queues (`breadth=2`)",
    "pretrained-backlog": "MBLinUCB, `backlog`",
    "pretrained-alpha": "MBLinUCB, alpha 0.3",
    "untrained-backlog": "LinUCB, `backlog`",
}
"""One difference each from one of `POLICIES`."""
LONGER = 80
"""Steps of the variant that has the least room to work a backlog off."""
VARIED = [(0.6, name, STEPS) for name in VARIANTS] + [(0.8, "untrained-backlog", LONGER)]
"""Share, variant and steps: the least share at which both of `POLICIES` end in overload, and one above."""
_AGGREGATOR, _RHO = 10.0, 0.9
"""mu of an aggregator of `TAXI_GRAPH`, and rho of all operators."""
_MEAN = 5
"""Steps over which a reward is averaged."""
_STEADY = 0.95


def graph_cell(plan: RunPlan, share: float, policy: str, steps: int = STEPS) -> Cell:
    """One share of the load, with agents of this kind."""
    stream = Stream("poisson", plan.pick(steps, steps - 10))
    return Cell(NAME, f"taxi graph, load {share:g}", stream, KMAX, f"graph-{policy}")


def cells(plan: RunPlan) -> list[Cell]:
    """Every share with all policies, and their variants."""
    alike = [graph_cell(plan, share, policy) for share, policy in product(SHARES, NAMES)]
    return [*alike, *(graph_cell(plan, share, policy, steps) for share, policy, steps in VARIED)]


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed.

    reached: steps until the mean reward of 5 is above -0.3. If it never is, one more than all steps. begin,
    end: seconds of latency, at most 5, means of the first and the last 10 steps. within: share of the steps
    within 2 s. all: mean reward. Rewards are those of the policy's own objective.
    """
    share = float(cell.experiment.rpartition(" ")[2])
    kind = KINDS[cell.partitioner.removeprefix("graph-")]
    values: Values = {name: [] for name in ("reached", "begin", "end", "within", "all")}
    for seed in plan.seeds:
        samples = plan.pick(SAMPLES, 50)
        rewards, latencies = _played(share, kind, samples=samples, steps=cell.stream.tuples, seed=seed)
        means = np.convolve(rewards, np.full(_MEAN, 1 / _MEAN), "valid")
        above = np.flatnonzero(means > GOAL)
        values["reached"].append(float(above[0] + _MEAN if len(above) else len(rewards) + 1))
        values["begin"].append(float(latencies[:10].mean()))
        values["end"].append(float(latencies[-10:].mean()))
        values["within"].append(float((latencies <= LMAX_S).mean()))
        values["all"].append(float(rewards.mean()))
    return values


def taxi_graph(share: float) -> OperatorGraph:
    """The graph of figure 4, of whose aggregators' units the load takes this share."""
    scale = RATE / share / service_rate(KMAX, mu=_AGGREGATOR, rho=_RHO)
    operators = {name: replace(op, mu=op.mu * scale) for name, op in TAXI_GRAPH.operators.items()}
    return OperatorGraph(operators, TAXI_GRAPH.edges)


def _played(
    share: float, kind: Kind, *, samples: int, steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards, and latencies in s, of each step."""
    environment = ElasticGraph(
        graph=taxi_graph(share),
        arrivals=Poisson(RATE),
        kmax=KMAX,
        lmax_ms=1000 * LMAX_S,
        step_s=STEP_S,
        objective=kind.objective,
    )
    agents = GraphAgents(environment, alpha=kind.alpha)
    if kind.trained:
        lessons = Lessons(samples=samples, model=QueueModel(), length_s=STEP_S, breadth=kind.breadth)
        agents.pretrain(RATE, lessons, seed=seed)
    _, info = environment.reset(seed=seed)
    rewards, latencies = np.empty(steps), np.empty(steps)
    for step in range(steps):
        waiting = {name: stage.queue or 0.0 for name, stage in info["operators"].items()}
        units = agents.decide(info["operators"], info["units"])
        _, rewards[step], _, _, info = environment.step(environment.action(units))
        bounds = {
            name: latency_bound(stage.arrivals, stage.capacity, waiting[name])
            for name, stage in info["operators"].items()
        }
        latencies[step] = min(CUT_S, longest_path(environment.graph, bounds))
    return rewards, latencies


def longest_path(graph: OperatorGraph, bounds: dict[str, float]) -> float:
    """The largest sum of bounds from a source to a sink."""
    until: dict[str, float] = {}
    for name in graph.order:
        until[name] = bounds[name] + max((until[source] for source in graph.upstream(name)), default=0.0)
    return max(until.values())


def _values(figures: SectionFigures, plan: RunPlan, share: float, policy: str, name: str) -> list[float]:
    return figures.values(graph_cell(plan, share, policy), name)


def _both(figures: SectionFigures, plan: RunPlan, name: str) -> str:
    """Medians of a figure of both policies, by share."""
    phrases = []
    for share in SHARES:
        each = (median(_values(figures, plan, share, policy, name)) for policy in POLICIES)
        phrases.append(f"load {share:g}: {' / '.join(map(number, each))}")
    return f"MBLinUCB / LinUCB, {'; '.join(phrases)}"


def _fifteen(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks = tuple(median(_values(figures, plan, share, "pretrained", "reached")) <= 15 for share in SHARES)
    return Outcome(f"steps: {_both(figures, plan, 'reached')}", checks)


def _faster(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks = tuple(
        lower(*(_values(figures, plan, share, policy, "reached") for policy in POLICIES))
        and median(_values(figures, plan, share, "pretrained", "all")) > GOAL
        for share in SHARES
    )
    steps, rewards = _both(figures, plan, "reached"), _both(figures, plan, "all")
    return Outcome(f"steps: {steps}; mean reward: {rewards}", checks)


def _stable(figures: SectionFigures, plan: RunPlan, policy: str = "pretrained") -> Outcome:
    checks, phrases = [], []
    for share in SHARES:
        begin, within = (median(_values(figures, plan, share, policy, name)) for name in ("begin", "within"))
        checks += [begin <= LMAX_S, within >= _STEADY]
        phrases.append(f"load {share:g}: {number(begin)} s, {within:.0%}")
    return Outcome(f"first 10 steps, share of steps within 2 s: {'; '.join(phrases)}", tuple(checks))


def _ours_stable(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _stable(figures, plan, OURS)


def _late(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks = []
    for share in SHARES:
        begin, end = (_values(figures, plan, share, "untrained", name) for name in ("begin", "end"))
        checks += [median(begin) > LMAX_S, lower(end, begin)]
    return Outcome(
        f"s in the first 10 steps: {_both(figures, plan, 'begin')}; in the last 10:"
        f" {_both(figures, plan, 'end')}",
        tuple(checks),
    )


_UNTOLD = (
    "At load 0.4 it does. At 0.6 and 0.8 it begins at 3 and 4 s and is soon above the cut for good. In its"
    " training (Alg. 1) every sample begins with an empty queue, so it has not learned what to do about one."
    " Half and twice the load and queues in training (`breadth=2`) suffice to mend it at load 0.6, and so"
    " does `backlog`: with either alone it begins within 0.07 s and stays there. Less exploration (alpha 0.3)"
    " alone does not (see the table of variants)."
)
_LOADS = "load 0.4, 0.6 and 0.8 of what 8 units do"
CLAIMS = (
    Claim(
        "003, fig. 10a, V.E",
        "On the application MBLinUCB has a reward above -0.3 within fifteen steps.",
        f"{_LOADS}: the mean of 5 steps is above -0.3 after at most 15",
        _fifteen,
        measure="simulated operator",
        reason="ours",
        note=(
            "At loads 0.6 and 0.8 it does not stay there: the mean of all steps is -0.29 and -0.32 (see the"
            " table)."
        ),
        every=True,
    ),
    Claim(
        "003, fig. 10a, V.E",
        "On the application MBLinUCB converges faster than LinUCB.",
        f"{_LOADS}: fewer steps until the mean of 5 is above -0.3, and so is the mean of all steps",
        _faster,
        measure="simulated operator",
        reason="ours",
        because=(
            "At load 0.8 it is above -0.3 for the first steps only, and the mean of all steps is below (see"
            " the claim of latency)."
        ),
    ),
    Claim(
        "003, fig. 10b, V.E",
        "On the application MBLinUCB begins within two seconds, and stays there.",
        f"{_LOADS}: mean latency of the first 10 steps at most 2 s; at least 95 % of the steps within 2 s"
        ' (our number for "stable")',
        _stable,
        measure="simulated operator",
        reason="ours",
        because=_UNTOLD,
        every=True,
    ),
    Claim(
        "003, fig. 10b, V.E",
        "On the application LinUCB begins far above two seconds, and gets better.",
        f"{_LOADS}: mean latency of the first 10 steps above 2 s; lower in the last 10",
        _late,
        measure="simulated operator",
        reason="paper",
        because=(
            "The paper does not say its load, which decides. At load 0.4 it begins at 4 s and gets to 3.5 s"
            " (in 7 of 10 seeds), much as the paper's, which gets to 3 s. At 0.6 and 0.8 it is still above"
            " the cut of 5 s after 30 steps. The printed objective (eq. 9) is the cause: once latency and"
            " queue are both above their bounds, the fewest units pay best, so a backlog is not worked off."
            " With `backlog` in its place LinUCB is back at 0.02 s within 30 steps at load 0.6, and within 80"
            " steps at 0.8, with every seed (see the table of variants)."
        ),
    ),
    Claim(
        "ours, to 003 fig. 10b",
        "Trained with queues, and with a reward that grows with them, the agents begin within two seconds,"
        " and stay there.",
        f"`breadth=2`, alpha 0.3, `backlog`, {_LOADS}: as for the paper's MBLinUCB",
        _ours_stable,
        measure="simulated operator",
        every=True,
        own=True,
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and the table of figure 10."""
    rewards, latencies = ("reached", "all"), ("begin", "end", "within")
    return [
        (
            "Figure 10, simulated: the seven operators of figure 4 (`ElasticGraph`), an agent each, up to"
            f" {KMAX} units, {1000 * LMAX_S:,.0f} ms, {plan.pick(STEPS, 20)} steps of {STEP_S:g} s,"
            f" {RATE:,.0f} tuples/s (table 2). *Load* is their share of what all units of an aggregator do;"
            " other operators are twice as fast. The paper says neither speeds nor"
            " selectivities. A latency is the"
            f" bound of II.B along the longest path, cut at {CUT_S:g} s."
        ),
        "",
        *table(
            [
                "load",
                "policy",
                "-0.3 after, steps",
                "reward",
                "latency of the first 10 steps, s",
                "last 10, s",
                "within 2 s",
            ],
            (
                [
                    f"{share:g}",
                    shown_name,
                    # The reward of ours is another one, so it is not compared.
                    *(
                        "-" if policy == OURS else figure(figures, graph_cell(plan, share, policy), name)
                        for name in rewards
                    ),
                    *(figure(figures, graph_cell(plan, share, policy), name) for name in latencies),
                ]
                for share, (policy, shown_name) in product(SHARES, NAMES.items())
            ),
            left=2,
        ),
        "",
        "Variants of these policies, with one difference each:",
        "",
        *table(
            ["load", "policy", "steps", "latency of the first 10, s", "last 10, s", "within 2 s"],
            (
                [
                    f"{at[0]:g}",
                    VARIANTS[at[1]],
                    f"{graph_cell(plan, *at).stream.tuples}",
                    *(figure(figures, graph_cell(plan, *at), name) for name in latencies),
                ]
                for at in VARIED
            ),
            left=2,
        ),
    ]
