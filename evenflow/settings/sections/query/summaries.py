"""Summaries: a second aggregation, whose tuples are the rows of closed windows of a query and of its views.

For the Spark stages, the results and `verify`, a summary is a query of its own, as a view is (`views`). Its
name is `<query>.<summary>`. It computes the rows of its parts itself, from the frames that its query routes,
so no part can be behind another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evenflow.grammar.aggregate_spec import Aggregates, AggregateSpec
from evenflow.grammar.emission import Emission

if TYPE_CHECKING:
    from evenflow.aggregates.result_expressions import Output

OF_THE_QUERY_ITSELF = "query"
"""The name of the part that is the query itself and no view of it."""
KEY = "key"
"""The name of the column of a part that is the part's own key."""
_EXACT = frozenset({"count", "min", "max", "first", "last"})
_EXACT_IF_SAID = frozenset({"count_distinct", "quantile"})


class Summary(BaseModel):
    """An aggregation of the rows that a query and its views have of the windows that end at the same time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    of: dict[str, str] = Field(
        min_length=1,
        description=(
            "Whose rows are aggregated, and by which of their columns: 'query' or the name of a view = the"
            " column. 'key' is the key of the part. A row that has null there is left out."
        ),
    )
    aggregates: Aggregates = Field(
        description=(
            "Result column = aggregate, as in [query.aggregates]. The columns are result columns of the"
            " parts. For the rows of another part they are null. Columns and parts must be exact."
        )
    )
    having: str | None = Field(
        default=None,
        description=(
            "SQL condition over the summary's own result columns (docs/expressions.md). Only rows for which"
            " it is true come out. None: all rows."
        ),
    )
    emit: str = Field(
        default="all",
        description="Which rows of a window are emitted: 'all' or 'top(K, COLUMN)', as query.emit.",
    )

    @field_validator("emit")
    @classmethod
    def _emit_is_a_mode(cls, value: str) -> str:
        emission = Emission.parse(value)
        if emission.mode == "changes":
            raise ValueError("a summary cannot emit 'changes': write 'all' or 'top(K, COLUMN)'")
        return str(emission)


def exact(label: str, specs: Mapping[str, AggregateSpec], outputs: Mapping[str, Output]) -> bool:
    """Whether this result column has one right value, which does not depend on how tuples were split."""
    from evenflow.aggregates.result_expressions import expression_of

    expression = expression_of(outputs[label])
    if expression is not None:
        return all(exact(output.label, specs, outputs) for output in expression.reads)
    spec, (_, aggregate, call) = specs[label], outputs[label]
    if spec.function in _EXACT_IF_SAID:
        return "exact" in spec.options
    whole = str(aggregate.result_type(call)) != "double"
    return spec.function in _EXACT or (spec.function == "sum" and whole)
