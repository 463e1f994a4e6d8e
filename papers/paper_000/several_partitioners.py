"""What figures 13 to 15 of 000 share: several partitioners on one stream, and the rate that the stream could
have.

Windows have three slides, as the paper's 60 s by 20 s. Tuple t goes through partitioner t mod P. There are 64
places, and a rule that splits keys gives 8 of them to reducers. A rate is the highest input rate that
`replay` sustains with the kept `costs`, in million tuples a second. It stands for the paper's measure,
throughput. Which keys combiners finish by themselves (*forwarding*) is as in the paper:

* Hashing and cAM have no reducers, so combiners finish everything. Shuffling, two choices and CM forward
  nothing.
* Partitioners that never synchronise forward nothing, because nobody knows which keys the others split.
* Partitioners that cooperate forward in each slide in which the common table came (section 4.2).

The rate with forwarding by announcement, which needs no common table, stands beside it.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace

import numpy as np

from evenflow.keys import candidate
from evenflow.numeric.arrays import Bools, Int32s, UInt64s
from evenflow.partitioners.dalton.cooperative import DaltonCooperative
from evenflow.partitioners.dalton.reducer import QTableReducer
from evenflow.simulation import Channel, KeyedStream, Scenario, entrant
from evenflow.simulation.routing import route
from papers.cells.run_plan import RunPlan, Stream
from papers.paper_000.reducer_exchange import talk
from papers.paper_000.replay import Counts, RoutedReplay, counted, rate_of, sustained
from papers.unit_costs import Costs, unit_costs

PAIRS = ("uniform+zipf", "zipf+zipf")
COOPERATIVE = "dalton-cooperative"
SPAN, WARM, MEASURED = 3, 4, 6
"""Slides of a window, slides before the first that counts, and slides that count."""
PLACES, REDUCERS = 64, 8
WITHOUT_REDUCERS = ("hashing", "cam")
OFTEN = 0.5
"""DSYNC in slides: the paper's 10 s."""
SLIDE_SECONDS = 20
"""How long a slide lasts in the paper."""
WORK_SECONDS = 7.5
"""How long the paper's reducer takes for a round. The paper gives no figure. But its interval settles at 10 s
(figure 14b), and by its rule it would become shorter if the reducer took less than 5 s, and longer if it took
more than 10 s.
"""
# Far from the hash seeds of the rules, so that a key's reducer does not depend on its worker.
_REDUCER_SEED = 1 << 20


def slide_of(plan: RunPlan) -> int:
    """Tuples of a slide."""
    return plan.pick(60_000, 400)


def keys_of(plan: RunPlan) -> int:
    """Keys of a stream: four tuples of each in a slide, if they are uniform."""
    return plan.pick(15_000, 100)


def stream_of(plan: RunPlan, kind: str, *, keys: int | None = None) -> Stream:
    """A stream of several sources, by its name in `drawn`."""
    return Stream(kind, (WARM + MEASURED) * slide_of(plan), keys or keys_of(plan))


def combiners(rule: str) -> int:
    """Combiners of a rule: what its reducers leave of the places."""
    return PLACES if rule.partition(":")[0] in WITHOUT_REDUCERS else PLACES - REDUCERS


@dataclass(frozen=True, eq=False)
class Run:
    """A stream that several partitioners routed."""

    workers: Int32s
    """The combiner of each tuple, shape (m,)."""
    tabled: Bools
    """Whether a common table came in a slide, shape (slides,)."""
    scenario: Scenario
    """Number of combiners and partitioners, and the window."""
    messages: int = 0
    """Messages to the reducer, as in `ExchangeRun`."""
    told_bytes: int = 0
    """Bytes of messages and tables, as in `ExchangeRun`."""


@dataclass(frozen=True)
class Server:
    """The reducer that makes the common tables."""

    seconds: float = 0.0
    """How long it takes for a round, if a slide lasts `SLIDE_SECONDS`."""
    merger: type[QTableReducer] = QTableReducer
    """How it makes a table."""


AT_ONCE = Server()
"""Tables take no time."""


def run(
    stream: KeyedStream,
    rule: str,
    *,
    seed: int,
    slide: int,
    partitioners: int,
    dsync: float | None = None,
    server: Server = AT_ONCE,
) -> Run:
    """Route the stream. slide: its tuples. dsync: in slides, of partitioners that cooperate. None: they
    never do. server: makes their tables.
    """
    scenario = Scenario(
        workers=combiners(rule),
        sources=partitioners,
        seed=seed,
        window_ms=SPAN * slide,
        slide_ms=slide,
        exchange=Channel(),
    )
    # Rounded up: the last slide may be short.
    slides = -(-len(stream) // slide)
    if not rule.startswith(COOPERATIVE):
        return Run(route(stream, entrant(rule), scenario).workers, np.zeros(slides, np.bool_), scenario)
    if dsync is None:
        alone = replace(scenario, exchange=None)
        return Run(route(stream, entrant(rule), alone).workers, np.zeros(slides, np.bool_), scenario)
    parts = cooperating(scenario, rule, stream, dsync_ms=int(dsync * slide))
    work = server.seconds / SLIDE_SECONDS * slide
    talked = talk(parts, stream, slide_ms=slide, work_ms=lambda now: work, merger=server.merger)
    return Run(
        talked.workers,
        tabled(talked.table_times, slides, slide),
        scenario,
        talked.messages,
        talked.told_bytes,
    )


def cooperating(
    scenario: Scenario, rule: str, stream: KeyedStream, *, dsync_ms: int
) -> list[DaltonCooperative]:
    """The partitioners of the scenario, which begin with this interval of synchronisation."""
    text = f"{rule}{',' if ':' in rule else ':'}dsync_ms={dsync_ms}"
    return [
        part for part in scenario.partitioners(entrant(text), stream) if isinstance(part, DaltonCooperative)
    ]


def tabled(table_times: list[int], slides: int, slide: int) -> Bools:
    """In which slides a table was heard, shape (slides,). table_times: ms of event time."""
    mask = np.zeros(slides, np.bool_)
    mask[[at // slide for at in table_times if at // slide < slides]] = True
    return mask


def counts(stream: KeyedStream, routed: Run, *, first: int = WARM) -> Counts:
    """What there is to do in each slide from `first` on."""
    scenario = routed.scenario
    keys = key_hashes(stream)
    return counted(
        RoutedReplay(
            workers=routed.workers,
            codes=stream.codes,
            panes=stream.times // scenario.slide_ms,
            sources=(np.arange(len(stream)) % scenario.sources).astype(np.int32),
            homes=candidate(keys, 1, scenario.workers, scenario.seed),
            reducers=candidate(keys, 1, REDUCERS, _REDUCER_SEED + scenario.seed),
            combiners=scenario.workers,
            reducer_count=REDUCERS,
        ),
        span=SPAN,
        first=first,
    )


def message_share(told_bytes: float, slides: int, costs: Costs) -> float:
    """Share of a slide that messages and tables take, if the slowest place makes and reads all of them.

    No cost per byte is kept. Each value of 8 bytes counts as much as a whole partial result here, which is
    sent and received. told_bytes: of so many slides, which last `SLIDE_SECONDS` each.
    """
    return told_bytes / 8 * (costs.send + costs.receive) * 1e-9 / (slides * SLIDE_SECONDS)


def key_hashes(stream: KeyedStream) -> UInt64s:
    """The hash of each key number."""
    keys = np.zeros(stream.key_count, np.uint64)
    keys[stream.codes] = stream.keys
    return keys


def rate(work_counts: Counts, forwards: Bools, costs: Costs) -> float:
    """Million tuples a second, with forwarding as in section 4.2 in the slides that say so, shape
    (slides,).
    """
    return sustained(
        [
            np.where(forwards[:, None], with_it, without)
            for with_it, without in zip(
                work_counts.work("forwarded", costs), work_counts.work("none", costs), strict=True
            )
        ],
        work_counts,
    )


def announced_rate(work_counts: Counts, costs: Costs) -> float:
    """Million tuples a second with forwarding by announcement."""
    return rate_of(work_counts, "announced", costs)


def forwards(rule: str, routed: Run, *, first: int = WARM) -> Bools:
    """In which slides from `first` on combiners finish whole keys, as in the paper."""
    some = routed.tabled[first:]
    return np.ones_like(some) if rule in WITHOUT_REDUCERS else some


def swung() -> list[Costs]:
    """The kept costs, with one of them halved or doubled."""
    costs = unit_costs()
    values = dict(zip((field.name for field in fields(costs)), astuple(costs), strict=True))
    return [replace(costs, **{name: by * value}) for name, value in values.items() for by in (0.5, 2.0)]


def whole_keys_imbalance(stream: KeyedStream, *, workers: int, seed: int) -> float:
    """How far the fullest worker is above its share, of all tuples, if keys with less than 1/n of them are
    hashed whole.

    The tuples of all other keys fill the other workers, so no rule that splits only hot keys is more level
    than this.
    """
    counts = np.bincount(stream.codes)
    whole = counts < len(stream) / workers
    homes = candidate(key_hashes(stream), 1, workers, seed)
    return (
        float(np.bincount(homes[whole], counts[whole], minlength=workers).max()) / len(stream) - 1 / workers
    )
