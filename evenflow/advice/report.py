"""The recommendation as frozen data: fields for programs, and sentences and settings for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evenflow.advice.rule import FEW_GROUPS, CandidateFigures, PaperRule
from evenflow.advice.sample import SampledKey, Strays
from evenflow.advice.sizing import UTILISATION
from evenflow.reporting.words import share
from evenflow.simulation import Provenance
from evenflow.text.options import name_of

ENOUGH_A_WORKER = 100
"""With fewer tuples per worker in a window than this, figures of balance are mostly chance."""
CHANGING = 0.1
"""From this turnover on, hot keys are said to change."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The recommendation for a stream, and the figures behind it.

    Shares are of all tuples of the sample. If tuples have costs, shares and skew are of the work, which is
    the sum of costs.
    """

    source: str
    """The stream as the user named it."""
    tuples: int
    """Tuples of the sample, without those that were set aside."""
    unreadable: int
    """Records of the sample that are no tuples. They are not among `tuples`."""
    strays: tuple[Strays, ...]
    """Tuples that were set aside for their event time. They are not among `tuples`."""
    seconds: float | None
    """Event time from the first to the last tuple. None if the tuples have no event time."""
    rate: float | None
    """Tuples per second to plan for: as asked, or of the busiest slide. None if it is not known."""
    keys: int
    """Different keys of the sample."""
    keys_estimate: int
    """A lower bound for the number of keys, with those that the sample missed."""
    zipf: float | None
    """Exponent of the Zipf law over as many keys that is as skewed as the sample. None with a single key."""
    top_share: float
    """Share of the most frequent key."""
    hot_key_count: int
    """Keys with at least 1/(5 workers) of the tuples."""
    hot_share: float
    """Share of the tuples of all hot keys together."""
    hot_turnover: float | None
    """Share of the tuples of hot keys that these keys have gained (`drift.hot_turnover`).
    None if it is not known.
    """
    hot_keys: tuple[SampledKey, ...]
    """The most frequent hot keys."""
    window_ms: int | None
    """Sliding window, ms. None: the whole sample is one window."""
    slide_ms: int
    """Slide of the window, ms. The busiest one decides about the rate."""
    window_tuples: float
    """Tuples in a window, as a mean over windows. Without a window, all tuples."""
    paper_rule: PaperRule
    """What the selection rule of 004 says."""
    candidates: tuple[CandidateFigures, ...]
    """The partitioners that were simulated, with their figures."""
    tolerance: float
    """How much more than the least cost a simpler candidate may cost, as a share."""
    merge_cost: float
    """Work of merging one more partial, in tuples."""
    chosen: CandidateFigures
    """The candidate that is recommended."""
    options: Mapping[str, Any]
    """The partitioner's options to set. It was simulated with them."""
    workers: int
    """Workers to set (`partitioner.workers`)."""
    instances: int
    """Partitioner instances to run."""
    max_workers: int
    """Largest number of workers to set."""
    routed_partitions: int
    """Partitions of the routed topic to set."""
    input_partitions: int
    """Partitions that the input topic should have."""
    size_reasons: tuple[str, ...]
    """Why so many workers, instances and partitions, each as a sentence."""
    capacity: float | None
    """Tuples per second that a worker can take, if the user said it."""
    cost: str | None
    """The column of the costs, as the setting `partitioner.cost` takes it. None: tuples are counted."""
    mean_cost: float | None
    """Mean cost of a tuple. None: tuples are counted."""
    cost_remarks: tuple[str, ...]
    """What the user should know of the column of the costs, each as a sentence."""
    provenance: Provenance
    """Where the figures of the chosen candidate come from."""

    @property
    def partitioner(self) -> str:
        """Registered name of the recommended partitioner."""
        return name_of(self.chosen.partitioner)

    @property
    def agrees(self) -> bool:
        """Whether the simulation confirms the rule of 004.
        Hashing counts as affinity, because it keeps keys whole.
        """
        return (self.paper_rule.verdict == "splitting") == (self.chosen.family == "splitting")

    @property
    def fullest_worker_rate(self) -> float | None:
        """Tuples per second of the fullest worker, or of tuples of mean cost. None if the rate is not
        known.
        """
        return None if self.rate is None else self.rate * self.chosen.slowest_worker / self.workers

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for this partitioner, each as a sentence."""
        if self.workers == 1:
            return ("one worker gets everything, whatever the partitioner: the simplest one will do",)
        weighed = self._weighed()
        return (*weighed, self._rule(), self._hottest(), *self._drift(), *self._figures(), self._confirmed())

    @property
    def work(self) -> str:
        """What shares are of, in a word: tuples, or work if tuples have costs."""
        return "tuples" if self.cost is None else "work"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the recommendation doubtful, each as a sentence."""
        read = self.tuples + sum(stray.tuples for stray in self.strays)
        sentences = [
            f"{stray.tuples:,} of {read:,} tuples ({share(stray.tuples, read)}) {stray.cause}, e.g."
            f" {stray.example}: they are set aside, no figure counts them"
            for stray in self.strays
        ]
        sentences += self.cost_remarks
        if self.keys == 1 and self.tuples > 1:
            sentences.append("every tuple has the same key: is it the right key?")
        elif self.keys == self.tuples > 1:
            sentences.append("no key occurs twice: is it the right key? Nothing is aggregated by it")
        if self.window_tuples < ENOUGH_A_WORKER * self.workers:
            sentences.append(
                f"{self.window_tuples:,.0f} tuples in a window are few for {self.workers:,} workers: figures"
                " of balance are mostly chance"
            )
        if self.hot_turnover is None and self.hot_key_count:
            sentences.append(
                "whether the hot keys change cannot be seen in so few tuples: where they do, a rule that"
                " forgets (evenflow, head=window) is the safe choice"
            )
        if self.seconds == 0 and self.tuples > 1:
            sentences.append(
                f"all {self.tuples:,} tuples have the same event time: is it the right time column? Nothing"
                " that needs a window, a slide or a rate can be seen"
            )
        if self.window_ms is None:
            sentences.append("no window was given: the whole sample counts as one, so its length matters")
        elif self.seconds and self.seconds * 1000 < self.window_ms:
            sentences.append(
                f"the sample spans {self.seconds:,.3g} s, less than a window of {self.window_ms / 1000:,.3g}"
                " s: figures are of a window that is still filling; take a larger sample"
            )
        fullest = self.fullest_worker_rate
        mean = "" if self.cost is None else " of mean cost"
        if self.capacity is not None and fullest is not None and fullest > self.capacity:
            sentences.append(
                f"the fullest worker gets {fullest:,.0f} tuples/s{mean}, more than"
                f" the {self.capacity:,.0f} it can take"
            )
        elif (
            self.capacity is not None and fullest is not None and fullest > UTILISATION * self.capacity * 1.01
        ):
            sentences.append(
                f"the fullest worker is at {fullest / self.capacity:.0%} of its capacity, over the "
                f"{UTILISATION:.0%} planned for"
            )
        return tuple(sentences)

    def settings(self) -> str:
        """The lines for evenflow.toml."""
        lines = ["[partitioner]", f'name = "{self.partitioner}"', f"workers = {self.workers}"]
        lines.append(f"max_workers = {self.max_workers}")
        lines.append(f"routed_partitions = {self.routed_partitions}")
        lines.append(f"instances = {self.instances}")
        if self.cost is not None:
            lines.append(f"cost = {_toml(self.cost)}")
        if self.options:
            pairs = ", ".join(f"{name} = {_toml(value)}" for name, value in self.options.items())
            lines.append(f"options = {{ {pairs} }}")
        return "\n".join(
            [*lines, f"# the input topic: {self.input_partitions} partitions, at least, serve that"]
        )

    def as_json(self) -> dict[str, Any]:
        """Every field, and the figures and sentences that follow from them, as plain JSON.
        The names are stable.
        """
        fields = asdict(self)
        for inner in ("chosen", "candidates", "cost_remarks", "provenance"):
            del fields[inner]
        if self.cost is None:
            del fields["cost"], fields["mean_cost"]
        return {
            "partitioner": self.partitioner,
            "options": fields.pop("options"),
            "workers": fields.pop("workers"),
            "instances": fields.pop("instances"),
            "max_workers": fields.pop("max_workers"),
            "routed_partitions": fields.pop("routed_partitions"),
            "input_partitions": fields.pop("input_partitions"),
            "reasons": list(self.reasons),
            "size_reasons": list(fields.pop("size_reasons")),
            "warnings": list(self.warnings),
            **fields,
            "strays": list(fields["strays"]),
            "hot_keys": list(fields["hot_keys"]),
            "agrees": self.agrees,
            "fullest_worker_rate": self.fullest_worker_rate,
            "candidates": [
                {**candidate.as_json(), "chosen": candidate is self.chosen} for candidate in self.candidates
            ],
            "settings": self.settings(),
            "provenance": self.provenance.as_json(),
        }

    def _weighed(self) -> list[str]:
        """Sentences about the costs of tuples. Empty if tuples are counted."""
        if self.mean_cost is None:
            return []
        sentences = [
            f"tuples are weighed by {self.cost}, {self.mean_cost:,.3g} on average: shares are of work, and"
            " only partitioners that weigh tuples are recommended"
        ]
        shares = {
            candidate.partitioner: candidate.slowest_worker / self.workers for candidate in self.candidates
        }
        if {"hashing", "evenflow"} <= shares.keys():
            sentences.append(
                f"the fullest worker has {shares['hashing']:.1%} of the work with hashing and"
                f" {shares['evenflow']:.1%} with evenflow; a fair share is {1 / self.workers:.1%}"
            )
        return sentences

    def _rule(self) -> str:
        rule = self.paper_rule
        few = "few" if rule.few else "not few"
        constant = "constant" if rule.constant else "not constant"
        remedy = (
            "splitting keys costs next to nothing to merge"
            if rule.verdict == "splitting"
            else "keep each key on one worker as far as balance allows (affinity)"
        )
        return (
            f"the selection rule of 004: {rule.groups:,.0f} keys in a window, {rule.tuples_per_worker:,.0f}"
            f" tuples a worker: {few} (at most {FEW_GROUPS:.0%} of them is few); {rule.new_share:.1%} of the"
            f" keys are new in the second half: {constant}; so {remedy}"
        )

    def _hottest(self) -> str:
        times = self.top_share * self.workers
        if times > 1:
            return (
                f"the hottest key has {self.top_share:.2%} of the {self.work}, {times:,.3g} times a worker's"
                f" fair share: while it stays on one worker, that one gets {self.top_share:.2%} of"
                " everything, however many there are"
            )
        return (
            f"the hottest key has {self.top_share:.2%} of the {self.work}, {times:.0%} of a worker's fair"
            " share: it need not be split"
        )

    def _drift(self) -> list[str]:
        """A sentence that says whether the hot keys change. Empty if it is not known."""
        if self.hot_turnover is None:
            return []
        share = f"{self.hot_turnover:.0%} of the {self.work} of hot keys"
        if self.hot_turnover < CHANGING:
            return [f"the hot keys stay: {share} have come to them since an earlier part of the sample"]
        return [
            f"the hot keys change: {share} have come to them since an earlier part of the sample; a head of"
            " all tuples so far (d-choices, w-choices without head=window) is late for them"
        ]

    def _figures(self) -> list[str]:
        """A sentence about the best candidate of each family."""
        sentences = []
        for family in ("hashing", "affinity", "splitting"):
            group = [
                candidate
                for candidate in self.candidates
                if candidate.family == family and candidate.considered
            ]
            if group:
                best = min(group, key=lambda candidate: candidate.cost)
                sentences.append(
                    f"{'' if family == 'hashing' else f'best of {family}: '}{best.partitioner}: the fullest"
                    f" worker gets {best.slowest_worker:,.3f} times the mean,"
                    f" {best.gamma - best.distinct:,.0f} partial results"
                    f" more than keys; cost {best.cost:,.3f}"
                )
        return sentences

    def _confirmed(self) -> str:
        pool = [candidate for candidate in self.candidates if candidate.considered] or list(self.candidates)
        best = min(pool, key=lambda candidate: candidate.cost)
        verdict = "confirms" if self.agrees else "overrules"
        if best is self.chosen:
            why = f"{self.chosen.partitioner} costs least"
        else:
            why = (
                f"{self.chosen.partitioner} costs at most {self.tolerance:.0%} more than {best.partitioner},"
                " the least, and comes before it in the order of preference"
            )
        return f"{why}: the simulation {verdict} the rule"


def _toml(value: Any) -> str:
    # Numbers, texts, truth values and lists of them are written alike in JSON and TOML.
    return json.dumps(value, ensure_ascii=False)
