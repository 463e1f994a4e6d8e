"""The settings tree. Precedence: arguments, then EVENFLOW_* variables, then the file, then defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, PrivateAttr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from evenflow.errors import ConfigError
from evenflow.expressions.cost import Cost, cost_of
from evenflow.grammar import paths
from evenflow.limits import MOST_WORKERS
from evenflow.settings.durations import format_duration
from evenflow.settings.identity import (
    begun_limits,
    changes,
    fingerprint,
    sizes_of_routing,
    with_forwarding,
    with_most_workers,
)
from evenflow.settings.sections.control import ControlSettings
from evenflow.settings.sections.input import InputSettings, RegistrySettings
from evenflow.settings.sections.kafka import KafkaSettings
from evenflow.settings.sections.partitioner import PartitionerSettings
from evenflow.settings.sections.query import Query
from evenflow.settings.sections.results import ResultsSettings
from evenflow.settings.sections.rhythm import most_frames
from evenflow.settings.sections.section import Section
from evenflow.settings.sections.sharing import chosen_buckets, chosen_partitions
from evenflow.settings.sections.spark import SparkSettings
from evenflow.settings.sections.web import WebSettings
from evenflow.settings.views import OF_THE_QUERY, TopicRole, place_of_views, queries
from evenflow.text.spelling import did_you_mean

if TYPE_CHECKING:
    from evenflow.keys import Buckets


_MAX_WORKERS, _ROUTED, _BUCKETS = (
    "partitioner.max_workers: ",
    "partitioner.routed_partitions: ",
    "spark.buckets: ",
)
"""How lines begin that tell a change of these settings."""
_FEWEST_FRAMES = 400
"""Least bound of a micro-batch that catches up, in frames. Two cores combine about this many full frames
in a second.
"""
_ALL_TASKS = 64
"""Most tasks of the combiner on a cluster manager of which each routed partition has one."""


class Settings(BaseSettings):
    """Everything a service reads. `EVENFLOW_QUERY__SLIDE=5s` overrides `[query] slide`."""

    model_config = SettingsConfigDict(
        env_prefix="EVENFLOW_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )
    reads_environment: ClassVar[bool] = True
    """Whether the variables EVENFLOW_* are read."""

    query: Query = Field(default_factory=Query, description="What is computed.")
    input: InputSettings = Field(default_factory=InputSettings, description="The input topic.")
    kafka: KafkaSettings = Field(default_factory=KafkaSettings, description="The broker.")
    partitioner: PartitionerSettings = Field(
        default_factory=PartitionerSettings, description="The partitioner service."
    )
    spark: SparkSettings = Field(default_factory=SparkSettings, description="The Spark jobs.")
    results: ResultsSettings = Field(default_factory=ResultsSettings, description="Where results go.")
    control: ControlSettings = Field(default_factory=ControlSettings, description="The controller.")
    web: WebSettings = Field(default_factory=WebSettings, description="The pages of all parts.")
    _origin: Settings | None = PrivateAttr(default=None)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment before the file, whose content arrives as init arguments (see load_settings)."""
        return (env_settings, init_settings) if cls.reads_environment else (init_settings,)

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Settings:
        how = self.partitioner
        if how.workers > self.max_workers:
            raise ValueError(
                f"partitioner.workers ({how.workers}) exceeds partitioner.max_workers ({self.max_workers}),"
                " the largest number of workers"
            )
        if self.max_workers > MOST_WORKERS:
            raise ValueError(
                f"partitioner.workers ({how.workers:,}) is more than the {MOST_WORKERS:,} workers that a"
                " query may have: divide the keys among several queries"
            )
        if self.routed_partitions > self.max_workers:
            raise ValueError(
                f"partitioner.routed_partitions ({self.routed_partitions}) exceeds partitioner.max_workers"
                f" ({self.max_workers}): {self.routed_partitions - self.max_workers} partitions would never"
                " have a worker"
            )
        if self.reducers > self.bucket_count:
            raise ValueError(
                f"spark.reducers ({self.reducers}) exceeds spark.buckets"
                f" ({self.bucket_count}): so many are there to run"
            )
        self.control.check(most_p=self.max_workers, most_r=self.bucket_count)
        self._check_batches()
        self._check_exploded()
        self._check_cost()
        if self.input.format == "csv":
            missing = [c for c in self.needed_columns if c not in self.input.columns]
            if missing:
                raise ValueError(
                    f"input.columns lacks {', '.join(missing)}, which the query reads"
                    f"{did_you_mean(missing[0], self.input.columns)}"
                )
        if self.input.format == "json" or self.input.registered:
            paths.check_together(self.needed_columns)
            paths.check_together(list(self.query.element_columns))
        if self.input.format == "text":
            extra = [c for c in self.needed_columns if c != "value"]
            if extra:
                raise ValueError(
                    f"text records have the one column 'value', but the query reads {', '.join(extra)}; "
                    "use time = '@timestamp'"
                )
        if self.query.views or self.query.summaries:
            place_of_views(self.results)
            self._check_places()
        if self.query.summaries and (self.spark.wiring != "fused" or self.spark.reduce != "hash"):
            raise ValueError(
                f"a summary (query.summaries.{next(iter(self.query.summaries))}) needs spark.wiring = 'fused'"
                " and spark.reduce = 'hash'"
            )
        return self

    def _check_batches(self) -> None:
        how, slide = self.partitioner, self.query.slide_ms
        if how.batch_clock == "event" and how.batch_interval is not None and slide % how.batch_interval:
            raise ValueError(
                f"partitioner.batch_interval ({how.batch_interval} ms) must divide the slide ({slide} ms),"
                " because batches of event time end where slides end: choose a divisor,"
                " or batch_clock = 'processing'"
            )

    def _check_exploded(self) -> None:
        explosion = self.query.explosion
        if explosion is not None and explosion.way == "list" and self.input.format != "json":
            raise ValueError(
                f"explode = {self.query.explode!r} takes lists in JSON apart, but input.format is"
                f" {self.input.format!r}: write \"split({explosion.column}, ';')\" or"
                f" 'words({explosion.column})', which take texts apart"
            )

    def _check_cost(self) -> None:
        try:
            cost = self.cost
        except ConfigError as error:
            raise ValueError(str(error)) from None  # pydantic reports only a ValueError as a wrong setting
        if cost is None:
            return
        form, own = self.input, list(cost.of_record)
        named = f"partitioner.cost = {self.partitioner.cost!r} reads"
        lists = [size.source.column for size in cost.sizes.values() if size.source.way == "list"]
        if lists and form.format != "json":
            raise ValueError(
                f"partitioner.cost = {self.partitioner.cost!r} counts the list {lists[0]!r}, which only JSON"
                f" can hold here, but input.format is {form.format!r}: write size(split({lists[0]}, ';')) or"
                f" size(words({lists[0]})), which count the parts of a text"
            )
        if form.format == "csv":
            missing = [name for name in own if name not in form.columns]
            if missing:
                raise ValueError(
                    f"{named} {', '.join(missing)}, which input.columns"
                    f" lacks{did_you_mean(missing[0], form.columns)}"
                )
        elif form.format == "text":
            missing = [name for name in own if name != "value"]
            if missing:
                raise ValueError(
                    f"{named} {', '.join(missing)}, but text records have the one column 'value'"
                )
        else:
            paths.check(own + list(cost.of_element))
            paths.check_together(own)
            paths.check_together(list(cost.of_element))
        self._check_cost_of_elements(cost, named)

    def _check_cost_of_elements(self, cost: Cost, named: str) -> None:
        """Refuse texts of the record that would be repeated for each of its elements
        because of the cost alone.
        """
        explosion, query = self.query.explosion, self.query
        if explosion is None:
            return
        if explosion.way != "list" and set(cost.of_element.values()) - {"string"}:
            raise ValueError(
                f"{named} {', '.join(cost.of_element)} as a number, but explode = {query.explode!r} makes"
                " texts: length(...) of a text is a number"
            )
        texts = [name for name in cost.repeated if name not in query.repeated_texts]
        if texts:
            raise ValueError(
                f"{named} the text {', '.join(map(repr, texts))} of the record beside something of its"
                " elements, so each element would repeat the text: take a column of numbers, or only columns"
                " of the elements, or only of the record"
            )

    def _check_places(self) -> None:
        """ValueError if two topics of the query and its views would be the same topic."""
        owners = {self.topic(role): f"the query's {role}" for role in sorted(OF_THE_QUERY)}
        for settings in queries(self):
            for role in ("partials", "telemetry", "results"):
                mine = f"{role} of {settings.query.name}"
                # `setdefault` returns who has this topic already, or `mine`.
                other = owners.setdefault(settings.topic(role), mine)
                if other != mine:
                    raise ValueError(
                        f"{mine} and {other} would be one topic, {settings.topic(role)}: give the view"
                        " another name, or set results.topic to another one"
                    )

    def as_view(self, query: Query, results: ResultsSettings) -> Settings:
        """These settings as those of a view: with its query and its results (evenflow/settings/views.py)."""
        return self._changed(self, query=query, results=results)

    def _changed(self, origin: Settings | None, **sections: Query | Section) -> Settings:
        """These settings with other sections. origin: the settings of the query, if these are to be those
        of a view.
        """
        changed = self.model_copy(update=sections)
        changed._origin = origin
        return changed

    @property
    def origin(self) -> Settings:
        """The settings of the query that routes the tuples. For a view, those of its query.
        Otherwise these settings.
        """
        return self if self._origin is None else self._origin

    def with_first_limits(self, limits: Mapping[str, int | None]) -> Settings:
        """These settings for a query that began with these limits (`Query.with_first_limits`)."""
        origin = None if self._origin is None else self._origin.with_first_limits(limits)
        return self._changed(origin, query=self.query.with_first_limits(limits))

    @property
    def needed_columns(self) -> list[str]:
        """Columns that must be parsed from the record's value, so neither '@key' nor '@timestamp'."""
        return list(self.query.record_columns)

    @property
    def cost(self) -> Cost | None:
        """What a tuple costs (`partitioner.cost`). None if each costs 1.

        ConfigError if the setting is wrong. Columns that only the cost reads are not in `needed_columns`:
        what they hold is no reason to reject a record.
        """
        if self.partitioner.cost is None:
            return None
        query = self.query.origin
        return cost_of(self.partitioner.cost, query.resolved, query.explosion, "partitioner.cost")

    def without_cost(self) -> Settings:
        """These settings for one who routes nothing: each tuple costs 1."""
        how = self.partitioner.model_copy(update={"cost": None})
        return self._changed(self._origin, partitioner=how)

    @property
    def input_partitions(self) -> int:
        """Partitions of the input topic.
        ConfigError if the number is neither set nor read from the topic yet.
        """
        if self.input.partitions is None:
            raise ConfigError(
                "the number of input partitions is not known",
                hint="set input.partitions, or read it from the topic (topics.query.input_topic)",
            )
        return self.input.partitions

    def with_input_partitions(self, partitions: int) -> Settings:
        """These settings with this number of input partitions."""
        origin = None if self._origin is None else self._origin.with_input_partitions(partitions)
        return self._changed(origin, input=self.input.model_copy(update={"partitions": partitions}))

    def with_lookup_sha256(self, digest: str) -> Settings:
        """These settings with this content of the lookup file (`Query.with_lookup_sha256`)."""
        origin = None if self._origin is None else self._origin.with_lookup_sha256(digest)
        return self._changed(origin, query=self.query.with_lookup_sha256(digest))

    def with_any_columns(self, columns: tuple[str, ...] | None) -> Settings:
        """These settings for a query that began with these columns of any value (`Query.any_columns`)."""
        origin = None if self._origin is None else self._origin.with_any_columns(columns)
        return self._changed(origin, query=self.query.with_any_columns(columns))

    @property
    def frames_per_batch(self) -> int:
        """Most offsets of a topic that a micro-batch reads.

        By default it is twice what the partitioners can write in a batch interval, so that a backlog shrinks
        even if a slow stream makes small frames. After each linger an instance cuts a frame for each worker,
        and each commit writes a marker behind the frames, which takes an offset too. Where the linger is
        chosen, an instance with many workers makes fewer frames, because each has 200 tuples.
        """
        if self.spark.max_frames_per_batch is not None:
            return self.spark.max_frames_per_batch
        how = self.partitioner
        seconds = self.spark.batch_interval / 1_000
        return max(
            _FEWEST_FRAMES, round(2 * seconds * most_frames(how, self.routed_partitions) * how.instances)
        )

    def combine_tasks(self, cores: int) -> int:
        """Most tasks of the combiner in a micro-batch.
        cores: of this process, where it runs all tasks itself.

        Fewer tasks cost less, but every core must find something to do.

        * If `spark.combine_tasks` is set, it decides.
        * With executors there is one task per routed partition. From 64 on there is one for each core that
          the largest plan asks for: with a thousand workers Spark's driver would hand out tasks and do
          nothing else.
        * In one process there is one task per core if every routed partition has a worker in use.
        * Otherwise there are two tasks per core. Spark decides which routed partitions share a task. With one
          task per core, all workers in use could fall to the same task.
        """
        if self.spark.combine_tasks is not None:
            return self.spark.combine_tasks
        if not self.spark.in_one_process:
            cores_asked_for = self.combine_cores(self.max_workers)
            return min(self.routed_partitions, max(_ALL_TASKS, cores_asked_for))
        return cores * (2 if self.routed_partitions > self.partitioner.workers else 1)

    def combine_cores(self, workers: int) -> int:
        """Cores of executors that combining asks for while so many workers are in use.

        A core has `spark.partitions_per_slot` workers, and a routed partition is combined on one core.
        """
        workers = min(workers, self.max_workers)
        return min(self.routed_partitions, -(-workers // self.spark.partitions_per_slot))

    @property
    def max_workers(self) -> int:
        """Largest number of workers."""
        how = self.partitioner
        return how.max_workers or max(how.workers, how.routed_partitions or 0)

    @property
    def routed_partitions(self) -> int:
        """Partitions of the routed topic."""
        if self.partitioner.routed_partitions is not None:
            return self.partitioner.routed_partitions
        return chosen_partitions(self.max_workers)

    @property
    def workers_per_partition(self) -> int:
        """Most workers that share a routed partition."""
        return -(-self.max_workers // self.routed_partitions)

    @property
    def bucket_count(self) -> int:
        """Number of reduce buckets."""
        return self.spark.buckets or chosen_buckets(self.max_workers)

    @property
    def reducers(self) -> int:
        """Reduce buckets in use at once (r) until a plan says otherwise."""
        return self.spark.reducers or self.bucket_count

    @property
    def buckets(self) -> Buckets:
        """The reduce buckets, and how keys are divided among them. A view has those of its query."""
        # Imported late: most programs that read settings hash no key.
        from evenflow.keys import Buckets

        how = self.partitioner
        return Buckets(self.bucket_count, how.seed if how.forwarding == "on" else None)

    @property
    def exchanges(self) -> bool:
        """Whether the partitioner instances tell each other what they know. False for an unknown
        partitioner.
        """
        how = self.partitioner
        if how.instances == 1 or how.exchange == "off":
            return False
        # Imported late: most programs that read settings compile no partitioner.
        from evenflow.partitioners.registry import tells

        try:
            return tells(how.name)
        except ConfigError:
            return False

    @property
    def data_plane_group(self) -> str:
        """Consumer group of the partitioners. Its committed offsets carry the state of each input
        partition.
        """
        return f"{self.origin.query.name}.partitioner"

    @property
    def max_skew(self) -> int:
        """How far (event time, ms) an input partition may be ahead of the slowest before it is paused."""
        if self.partitioner.max_skew is not None:
            return self.partitioner.max_skew
        return self.query.window + 10 * self.query.slide_ms

    @property
    def query_checkpoint(self) -> str:
        """Folder (or URI) of this query's checkpoints. It has a subfolder for each stage."""
        return f"{self.spark.checkpoint_folder.rstrip('/')}/{self.query.name}"

    def topic(self, role: TopicRole) -> str:
        """Name of the topic with this role. A view shares some topics with its query
        (`views.OF_THE_QUERY`).
        """
        if self._origin is not None and role in OF_THE_QUERY:
            return self._origin.topic(role)
        if role == "input" and self.input.topic is not None:
            return self.input.topic
        if role == "results" and self.results.topic is not None:
            return self.results.topic
        return f"{self.query.name}.{role}"

    @property
    def results_registry(self) -> tuple[str, RegistrySettings] | None:
        """The section and the settings of the schema registry of results. None if the settings name none."""
        for section, registry in (
            ("results.registry", self.results.registry),
            ("input.registry", self.input.registry),
        ):
            if registry is not None:
                return section, registry
        return None

    def identity(self) -> dict[str, Any]:
        """All that is fixed for the life of a query, as plain JSON. Old state is compared with it."""
        if self._origin is not None:
            return self._origin.identity() | {"view": self._of_view()}
        return {
            "query": self.query.canonical(),
            "input": (
                self.input.model_dump(mode="json", exclude={"registry", "reject_limit", "rejected_retention"})
                | {"topic": self.topic("input"), "partitions": self.input_partitions}
            ),
            "partitioner": (
                {"routed_partitions": self.routed_partitions}
                # Left out where each worker has a partition: queries began before workers could share one.
                | ({} if self.workers_per_partition == 1 else {"max_workers": self.max_workers})
                | self._of_homes()
            ),
            "spark": {"buckets": self.bucket_count},
        }

    def _of_homes(self) -> dict[str, Any]:
        """What decides the bucket of a key's home. Nothing without forwarding: then homes decide nothing."""
        how = self.partitioner
        return {} if how.forwarding == "off" else {"forwarding": how.forwarding, "seed": how.seed}

    def _of_view(self) -> dict[str, Any]:
        query = self.query
        fields: dict[str, Any] = {
            "name": query.view_name,
            "aggregates": {name: str(spec) for name, spec in query.aggregates.items()},
            "window": query.window,
            "slide": query.slide_ms,
        }
        # Left out at their defaults: what a view does not set is no part of its fingerprint.
        if query.own_key is not None:
            fields["key"] = query.own_key
        if query.summary is not None:
            fields["of"] = [
                [by, {name: str(spec) for name, spec in part.aggregates.items()}, part.window, part.own_key]
                for part, by in query.parts
            ]
            fields |= {} if query.having is None else {"having": query.having}
        return fields if query.emit == "all" else fields | {"emit": query.emit}

    def changes_since(self, identity: dict[str, Any]) -> list[str]:
        """What has changed since the query began, one line for each setting. identity: that of the beginning.

        Input partitions that were added since then are no change, and neither is another `max_jump` or a
        larger `out_of_orderness`.
        """
        now = self.identity()
        first = begun_limits(identity)
        if "max_jump" in first:
            now["query"]["max_jump"] = identity["query"]["max_jump"]
        if (disorder := first.get("out_of_orderness")) is not None:
            shrunk = self.query.out_of_orderness < disorder
            now["query"]["out_of_orderness"] = (
                f"{format_duration(self.query.out_of_orderness)} (it may only grow)"
                if shrunk
                else identity["query"]["out_of_orderness"]
            )
        before = _partitions(identity)
        if before is not None and before < now["input"]["partitions"]:
            now["input"]["partitions"] = before
        then, now = with_forwarding(identity, now), with_forwarding(now, identity)
        then, now = with_most_workers(then), with_most_workers(now)
        # Where each worker has a partition, a number that is not set follows the other.
        alone = all(most == routed for most, routed in map(sizes_of_routing, (then, now)))
        follows = _ROUTED if self.partitioner.routed_partitions is None else _MAX_WORKERS
        hidden = alone and None in (self.partitioner.routed_partitions, self.partitioner.max_workers)
        lines = [line for line in changes(then, now) if not (hidden and line.startswith(follows))]
        sizes = [at for at, line in enumerate(lines) if line.startswith((_MAX_WORKERS, _ROUTED))]
        if sizes:
            lines[sizes[-1]] += self._way_back(*sizes_of_routing(then))
        return [self._with_buckets(line) for line in lines]

    def _with_buckets(self, line: str) -> str:
        """The line of a change, and if buckets follow the workers, what to set to have those of before."""
        if self.spark.buckets is not None or not line.startswith(_BUCKETS):
            return line
        before = line.removeprefix(_BUCKETS).partition(" ")[0]
        return f"{line} (to go on: spark.buckets = {before})"

    def _way_back(self, most: Any, routed: Any) -> str:
        """What to set for these numbers of workers and routed partitions, if a number that follows others
        has changed. The numbers may be anything.
        """
        how = self.partitioner
        if None not in (how.max_workers, how.routed_partitions):
            return ""
        if not all(type(number) is int and 1 <= number <= MOST_WORKERS for number in (most, routed)):
            return ""
        back = [f"partitioner.max_workers = {most}", f"partitioner.routed_partitions = {routed}"]
        if how.workers > most:
            back.append(f"partitioner.workers at most {most}")
        return f" (to go on: {', '.join(back)})"

    @property
    def fingerprint(self) -> str:
        """16 hex digits over `identity()`. Every frame, blob, committed state and checkpoint holds them.

        The number of input partitions is left out, because partitions may be added.
        """
        identity = self.identity()
        del identity["input"]["partitions"]
        return fingerprint(identity)


def _partitions(identity: dict[str, Any]) -> int | None:
    """The number of input partitions in an identity, None if it has none."""
    fields = identity.get("input")
    count = fields.get("partitions") if isinstance(fields, dict) else None
    return count if type(count) is int else None
