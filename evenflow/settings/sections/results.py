"""Where results go."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator, model_validator

from evenflow.settings.places import without_password
from evenflow.settings.sections.input import RegistrySettings
from evenflow.settings.sections.result_sinks import BUILT_IN_SINKS, SinkForm
from evenflow.settings.sections.section import Section

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
