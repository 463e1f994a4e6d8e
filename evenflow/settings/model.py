"""The settings tree. Precedence: arguments, then EVENFLOW_* variables, then the file, then defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from evenflow.errors import ConfigError
from evenflow.expressions.cost import Cost, cost_of
from evenflow.grammar import paths
from evenflow.limits import MOST_WORKERS
from evenflow.settings.durations import Duration, format_duration
from evenflow.settings.identity import (
    begun_limits,
    changes,
    fingerprint,
    sizes_of_routing,
    with_forwarding,
    with_most_workers,
)
from evenflow.settings.places import without_password
from evenflow.settings.sections.choices import CHOICES, checked_apart
from evenflow.settings.sections.control import ControlSettings
from evenflow.settings.sections.exactness import Client, refused_extras
from evenflow.settings.sections.input import InputSettings, RegistrySettings
from evenflow.settings.sections.query import Query
from evenflow.settings.sections.result_sinks import BUILT_IN_SINKS, SinkForm
from evenflow.settings.sections.rhythm import BLOCK_WORK, most_frames, shortest_transaction
from evenflow.settings.sections.section import Section
from evenflow.settings.sections.sharing import chosen_partitions
from evenflow.settings.sections.spark import SparkSettings
from evenflow.settings.sections.web import WebSettings
from evenflow.settings.views import OF_THE_QUERY, TopicRole, place_of_views, queries
from evenflow.text.spelling import did_you_mean

if TYPE_CHECKING:
    from evenflow.keys import Buckets


class KafkaExtras(Section):
    """Raw settings that are handed to one client as they are. They override the neutral fields.

    Settings that exact results depend on are refused (evenflow/settings/sections/exactness.py).
    """

    librdkafka: dict[str, str | int | float | bool] = Field(
        default_factory=dict, repr=False, description="For confluent-kafka (producers, data plane, verify)."
    )
    faust: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        repr=False,
        description=(
            "For the control plane, by Faust's own names (broker_request_timeout, ...). Faust configures its "
            "aiokafka clients by them."
        ),
    )
    java: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        repr=False,
        description="For Spark's Kafka source and sink, without the 'kafka.' prefix.",
    )

    @model_validator(mode="after")
    def _nothing_that_exactness_rests_on(self) -> KafkaExtras:
        named: dict[Client, dict[str, Any]] = {
            "librdkafka": dict(self.librdkafka),
            "java": dict(self.java),
            "faust": dict(self.faust),
        }
        refused = [line for client, names in named.items() for line in refused_extras(client, names)]
        if refused:
            raise ValueError(f"exact results rest on what is set here: take it out: {', '.join(refused)}")
        return self


_SASL_FIELDS = ("sasl_mechanism", "sasl_username", "sasl_password", "sasl_token_file")


class KafkaSettings(Section):
    """The address of the broker and how to log in, in neutral names.
    `settings.kafka` translates them for each client.
    """

    bootstrap_servers: str = Field(
        default="127.0.0.1:9092",
        description="host:port[,host:port...]. May also be written `bootstrap.servers`.",
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="Transport and authentication."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = Field(
        default=None, description="SASL mechanism. Required with SASL_*. None: no SASL."
    )
    sasl_username: str | None = Field(
        default=None, description="SASL user. None: no SASL, or OAUTHBEARER, whose token names the user."
    )
    sasl_password: SecretStr | None = Field(
        default=None, description="SASL password. None: no SASL, or OAUTHBEARER."
    )
    sasl_token_file: Path | None = Field(
        default=None,
        description=(
            "With OAUTHBEARER: file with the access token, a JSON Web Token with an end (`exp`). It is read"
            " again for each log-in, so whatever renews the token replaces the file."
            " None: another mechanism, or no SASL."
        ),
    )
    ssl_ca: Path | None = Field(
        default=None, description="PEM file of the authority that signed the broker. None: the system's."
    )
    ssl_certificate: Path | None = Field(
        default=None, description="PEM client certificate. None: no client TLS."
    )
    ssl_key: Path | None = Field(default=None, description="PEM (PKCS#8) client key. None: no client TLS.")
    ssl_key_password: SecretStr | None = Field(
        default=None, description="Password of ssl_key. None: not encrypted."
    )
    replication_factor: int = Field(
        default=1, ge=1, description="Replicas of topics that evenflow creates. Use 3 on a real cluster."
    )
    request_timeout: Duration = Field(
        default=30_000,
        description="How long a request waits for a broker before it fails with a clear error.",
    )
    startup_wait: Duration = Field(
        default=0,
        description=(
            "How long a starting service waits for a broker that does not answer, or for an input topic that"
            " does not exist yet, before it gives up. 0ms: it does not wait."
        ),
    )
    extras: KafkaExtras = Field(default_factory=KafkaExtras, description="Raw settings per client.")

    @model_validator(mode="before")
    @classmethod
    def _accept_the_dotted_name(cls, data: Any) -> Any:
        # An unquoted bootstrap.servers is to TOML a table `bootstrap` with the key `servers`, a quoted one is
        # one key.
        if isinstance(data, dict):
            data = dict(data)
            nested = data.pop("bootstrap", None)
            if isinstance(nested, dict) and "servers" in nested:
                data.setdefault("bootstrap_servers", nested["servers"])
            if "bootstrap.servers" in data:
                data.setdefault("bootstrap_servers", data.pop("bootstrap.servers"))
        return data

    @model_validator(mode="after")
    def _sasl_is_complete(self) -> KafkaSettings:
        set_fields = {name for name in _SASL_FIELDS if getattr(self, name) is not None}
        if not self.security_protocol.startswith("SASL_"):
            if set_fields:
                raise ValueError("sasl_* is set but security_protocol is not SASL_PLAINTEXT or SASL_SSL")
        else:
            by_token = self.sasl_mechanism == "OAUTHBEARER"
            needed = (
                "sasl_mechanism",
                *(("sasl_token_file",) if by_token else ("sasl_username", "sasl_password")),
            )
            missing = [name for name in needed if name not in set_fields]
            if missing:
                raise ValueError(f"{self.security_protocol} lacks {' and '.join(missing)}")
            if not set_fields <= set(needed):
                unused = " and ".join(sorted(set_fields - set(needed)))
                raise ValueError(
                    f"{unused} has no meaning with sasl_mechanism {self.sasl_mechanism}: take it out"
                )
        if (self.ssl_certificate is None) != (self.ssl_key is None):
            raise ValueError("ssl_certificate and ssl_key go together")
        return self

    @property
    def who(self) -> str:
        """The user as which the broker sees us, in words."""
        if self.sasl_token_file is not None:
            return f"the user of the token in {self.sasl_token_file}"
        if self.sasl_username is not None:
            return f"user {self.sasl_username}"
        return "an anonymous user" if self.ssl_certificate is None else f"the user of {self.ssl_certificate}"


_MAX_WORKERS, _ROUTED = "partitioner.max_workers: ", "partitioner.routed_partitions: "
"""How lines begin that tell a change of these settings."""
_FEWEST_FRAMES = 400
"""Least bound of a micro-batch that catches up, in frames. Two cores combine about this many full frames
in a second.
"""
_ALL_TASKS = 64
"""Most tasks of the combiner on a cluster manager of which each routed partition has one."""


class PartitionerSettings(Section):
    """The partitioner service."""

    name: str = Field(
        default="evenflow",
        description=(
            "Registered partitioner (`evenflow partitioners`), or a class of your own as module:Class "
            "(docs/your-own.md). Options may stand behind it (pkg:d=3) or in options, not in both."
        ),
    )
    options: dict[str, int | float | bool | str | list[int | float]] = Field(
        default_factory=dict,
        description="Options of the partitioner. A window and slide that are not set are the query's.",
    )
    workers: int = Field(default=8, ge=1, description="Workers in use (p), at most max_workers.")
    max_workers: int | None = Field(
        default=None,
        ge=1,
        le=MOST_WORKERS,
        description=(
            "Largest number of workers that a plan may ask for. Fixed for the life of a query. None:"
            " routed_partitions, or workers if that is more."
        ),
    )
    routed_partitions: int | None = Field(
        default=None,
        ge=1,
        le=MOST_WORKERS,
        description=(
            "Partitions of the routed topic. Worker w has partition w mod routed_partitions, so several"
            " workers share a partition if there are fewer partitions than workers"
            " (docs/operations/workers-and-partitions.md). Combining uses at most one core for each. Fixed"
            " for the life of a query. None: one for each of max_workers, and from 129 workers on 43 to 64,"
            " which cost far less."
        ),
    )
    cost: str | None = Field(
        default=None,
        description=(
            "How much work a tuple is for its worker: a column of numbers, or a SQL expression as in"
            " 'length(text) / 100' or 'size(items)', the number of elements of a list (docs/expressions.md)."
            " It is rounded to a whole number from 1 to 1,000,000. Only some partitioners weigh tuples. This"
            " affects the balance, never the results, and may change at any restart."
            " None: each tuple costs 1."
        ),
    )
    speeds: Literal["settings", "measured"] = Field(
        default="settings",
        description=(
            "How fast the workers are. settings: as an option of the partitioner says (evenflow's weights),"
            " or all alike. measured: Spark measures how long each worker's tuples take to combine, and"
            " workers that take longer get less, whether their machine is slow or their tuples are much work."
            " Only 'evenflow' can be told. This affects the balance, never the results."
        ),
    )
    seed: int = Field(
        default=7,
        ge=0,
        description=(
            "Seed of the hash family and of every random choice. With forwarding it is fixed for the life of"
            " a query."
        ),
    )
    instance: str = Field(
        default="0",
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description=(
            "Identity of this instance: its transactional.id, snapshots and status page. It must be unique"
            " within the query. It should end in a number of its own (partitioner-3)."
        ),
    )
    instances: int = Field(
        default=1,
        ge=1,
        le=256,
        description=(
            "How many instances share the input. With more than one, partitioners that remember where keys"
            " live agree on each key's home by hash instead. This affects the balance, never the results."
        ),
    )
    exchange: Literal["on", "off"] = Field(
        default="on",
        description=(
            "Whether instances tell each other what they know, if there are several and their partitioner"
            " can. They do so over the topic '<query name>.sync'. This"
            " affects the balance, never the results."
        ),
    )
    forwarding: Literal["on", "off"] = Field(
        default="off",
        description=(
            "on: the reduce bucket of a key is that of its home, so partials of keys that are not split stay"
            " on the machine of their worker. off: buckets divide the keys by a hash of their own. It is for"
            " the fused wiring on several executors, where workers are a multiple of buckets and buckets of"
            " executors, and for partitioners whose homes are F_1, as those of hashing, dalton, and evenflow"
            " with several instances. Fixed for the life of a query, and the seed with it. Results are the"
            " same."
        ),
    )
    exchange_patience: Duration = Field(
        default=2_000,
        gt=0,
        description=(
            "How long (processing time) a round of the exchange waits for instances that have not told yet,"
            " from its first message on. An instance tells between two blocks, each of up to a second. So an"
            " instance that is at work tells within the default. Nobody stands still meanwhile."
        ),
    )
    block_tuples: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description=(
            "Most records that are read, routed and framed at once. None:"
            " 200 for each worker, at least 50000."
        ),
    )
    reading: Literal["queues", "consume"] = Field(
        default="queues",
        description=(
            "How records come from Kafka's client. queues: into one buffer, without an object of Python for"
            " each record. consume: through confluent-kafka's `consume`, which takes twice as much CPU time a"
            " tuple. Where queues were not proven for the installed confluent-kafka, the service reads by"
            " consume and says so. This affects the speed, never the results."
        ),
    )
    linger: Duration | None = Field(
        default=None,
        description=(
            "How long a block waits to fill while records are scarce. It bounds the frames per second, and"
            " the time until a stop is noticed. None: chosen by the rate and the number of workers (50ms to"
            " 1s), such that frames have 200 tuples or are few, within max_delay. The log and"
            " the status page say what was chosen."
        ),
    )
    max_delay: Duration = Field(
        default=2_000,
        ge=20,
        description=(
            "How long a tuple may wait in a block and in a transaction together, where linger or"
            " commit_interval is chosen. What is set counts as it is. This affects the delay and the load of"
            " the brokers, never the results."
        ),
    )
    batch_interval: Duration | None = Field(
        default=None,
        ge=10,
        description=(
            "Length of a micro-batch, for partitioners that decide on whole batches (prompt, partly,"
            " time-based, dalton-batch). With a length, any other partitioner routes in batches too. None:"
            " the query's slide for the former, no batches for the latter."
        ),
    )
    batch_clock: Literal["event", "processing"] = Field(
        default="event",
        description=(
            "What ends a micro-batch: event time, once every input partition of the instance has passed an"
            " interval (batch_interval divides the slide), or processing time. This"
            " affects the balance, never the results."
        ),
    )
    batch_release: Literal["early", "off"] = Field(
        default="early",
        description=(
            "With batch_clock = 'processing': early cuts a batch before its interval is over, by as long as"
            " the slowest of the last 8 batches took, at most half of the interval."
            " off: cut at the end of the interval."
        ),
    )
    batch_bytes: int = Field(
        default=128_000_000,
        ge=1_000_000,
        le=2_000_000_000,
        description=(
            "Bytes of tuples that may wait for the end of their micro-batch. A batch is cut short when there"
            " are more. The process needs about four times as much while it frames a batch."
        ),
    )
    commit_interval: Duration | None = Field(
        default=None,
        description=(
            "Length of a transaction (processing time). Up to one linger and the work of one block are added."
            " None: 500ms, and longer with more than 200 workers, because each commit writes a marker for"
            " every worker, within max_delay."
        ),
    )
    transaction_timeout: Duration = Field(
        default=10_000,
        description=(
            "Longest time for which a crashed instance holds back readers. It must be at least"
            " commit_interval + linger + 1s, or the broker would abort"
            " transactions before they are committed."
        ),
    )
    idle_timeout: Duration | None = Field(
        default=None,
        description=(
            "An input partition with nothing to read for this long stops holding back the others. None: the"
            " others wait for it for ever, which is right for replays. Idle partitions do not follow a step"
            " of more than max_skew: where only one partition has tuples, set max_skew to more than the"
            " longest gap between them."
        ),
    )
    max_skew: Duration | None = Field(
        default=None,
        description=(
            "An input partition that is further than this (event time) ahead of the slowest is paused. Idle"
            " partitions do not follow a larger step of the only partition with tuples, so no window closes"
            " until a second one is as far. None: the window plus ten slides."
        ),
    )
    frame_bytes: int = Field(
        default=1_000_000,
        ge=1_000,
        le=8_000_000,
        description="Frames and blobs are cut into parts near this size.",
    )
    snapshot_interval: Duration = Field(
        default=30_000, description="How often learnt state is saved, so that a restart continues with it."
    )
    web_host: str = Field(
        default="127.0.0.1", description="Address of the status page and the metrics (`/metrics/`)."
    )
    web_port: int = Field(
        default=0, ge=0, le=65535, description="Port of the status page. 0: a free port, which is logged."
    )

    @model_validator(mode="before")
    @classmethod
    def _options_behind_the_name(cls, values: Any) -> Any:
        return checked_apart(values, CHOICES["partitioner"])

    @model_validator(mode="after")
    def _transactions_end_in_time(self) -> PartitionerSettings:
        # A service asks only after each block whether it is time to commit, so a block may begin just before
        # that time.
        shortest = shortest_transaction(self)
        if shortest > self.transaction_timeout:
            parts = [
                f"{name} ({'chosen' if value is None else f'{value} ms'})"
                for name, value in (("commit_interval", self.commit_interval), ("linger", self.linger))
            ]
            raise ValueError(
                f"{' + '.join(parts)} + {BLOCK_WORK} ms for a block's work, {shortest} ms together, must not"
                f" exceed transaction_timeout ({self.transaction_timeout} ms): a transaction is as long as"
                " that, and the broker would abort each before it is committed. Lower the first two"
            )
        return self

    @model_validator(mode="after")
    def _batches_of_processing_time_have_a_length(self) -> PartitionerSettings:
        if self.batch_clock == "processing" and self.batch_interval is None:
            raise ValueError("batch_clock = 'processing' needs batch_interval, the length of a micro-batch")
        return self


_PATH = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_SINK_NAME = re.compile(rf"\w[\w.-]*|{_PATH}:{_PATH}")


class ResultsSettings(Section):
    """Where results go."""

    sink: str = Field(
        default="kafka",
        description=(
            "kafka: a JSON record for each row. avro: an Avro record for each row, in Kafka too, with a"
            " schema in a registry. frames: an Arrow record for each bucket and window, in Kafka too."
            " parquet: a folder. delta: a Delta table. postgres: a table of Postgres. A sink of your own: the"
            " name of its entry point, or module:SINK. See docs/results.md."
        ),
    )
    topic: str | None = Field(default=None, description="Results topic. None: '<query name>.results'.")
    path: Annotated[str, AfterValidator(without_password)] | None = Field(
        default=None,
        description=(
            "Folder or URI of the Parquet files or the Delta table, for this query alone. With postgres:"
            " 'postgresql://user@host:5432/database/table', without a password. None: these sinks are"
            " refused. A sink of your own decides what it means."
        ),
    )
    registry: RegistrySettings | None = Field(
        default=None,
        description='The schema registry of `sink = "avro"`. None: that of `input.registry`.',
    )
    register_schema: bool = Field(
        default=True,
        description=(
            'With `sink = "avro"`: whether a start registers the schema of the results if it is not there'
            " yet. False: the start is refused then. `evenflow results --schema` shows the schema."
        ),
    )

    @field_validator("sink")
    @classmethod
    def _sink_is_a_name(cls, value: str) -> str:
        # Whether there is such a sink is known only where its package is installed, and the services load it
        # there.
        if not _SINK_NAME.fullmatch(value):
            raise ValueError(
                f"{value!r} is no name of a sink: {', '.join(BUILT_IN_SINKS)}, the name of an entry point of"
                " the group evenflow.sinks, or module:SINK"
            )
        return value

    @model_validator(mode="after")
    def _the_sink_has_the_path_that_it_needs(self) -> ResultsSettings:
        form = self.form
        if form is not None and form.path is not None and self.path is None:
            raise ValueError(f"results.sink = '{self.sink}' needs results.path")
        return self

    @model_validator(mode="after")
    def _a_registry_is_for_sinks_that_take_one(self) -> ResultsSettings:
        form = self.form
        if form is not None and not form.registry:
            changed = {"registry": self.registry is not None, "register_schema": not self.register_schema}
            named = [name for name, is_set in changed.items() if is_set]
            if named:
                takers = " or ".join(repr(name) for name, other in BUILT_IN_SINKS.items() if other.registry)
                raise ValueError(
                    f"{' and '.join(named)} belong to sink = {takers}, but the sink is '{self.sink}'"
                )
        return self

    @property
    def form(self) -> SinkForm | None:
        """What the sink asks of these settings, and how its rows lie. None for a sink of one's own."""
        return BUILT_IN_SINKS.get(self.sink)

    @property
    def dated(self) -> bool:
        """Whether event times must be of the years 100 to 9899 (`SinkForm.dated`)."""
        return self.form is not None and self.form.dated

    @property
    def folder(self) -> str | None:
        """Folder or URI that Spark reaches.
        None if `path` is another place: of a sink of one's own, or on a server.
        """
        return None if self.form is None or self.form.path == "server" else self.path

    @property
    def takes_registry(self) -> bool:
        """Whether the sink registers schemas."""
        return self.form is not None and self.form.registry

    @property
    def on_server(self) -> bool:
        """Whether the results are on a server that is not Kafka, such as Postgres."""
        return self.form is not None and self.form.path == "server"


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
        if self.reducers > self.spark.buckets:
            raise ValueError(
                f"spark.reducers ({self.reducers}) exceeds spark.buckets"
                f" ({self.spark.buckets}): so many are there to run"
            )
        self.control.check(most_p=self.max_workers, most_r=self.spark.buckets)
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
    def reducers(self) -> int:
        """Reduce buckets in use at once (r) until a plan says otherwise."""
        return self.spark.reducers or self.spark.buckets

    @property
    def buckets(self) -> Buckets:
        """The reduce buckets, and how keys are divided among them. A view has those of its query."""
        # Imported late: most programs that read settings hash no key.
        from evenflow.keys import Buckets

        how = self.partitioner
        return Buckets(self.spark.buckets, how.seed if how.forwarding == "on" else None)

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
            "spark": {"buckets": self.spark.buckets},
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
        return lines

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
