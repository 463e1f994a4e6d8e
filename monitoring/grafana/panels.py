"""The few kinds of panel that the dashboards are made of, and the dashboard around them.

Every panel has a description, a unit, and PromQL that selects the query and the instances chosen at the
dashboard's top.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import common as looks
from grafana_foundation_sdk.builders import dashboard, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.models.common import (
    BigValueGraphMode,
    DataSourceRef,
    GraphDrawStyle,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    LineInterpolation,
    StackingMode,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode

SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
CHOSEN = 'query="$query"'
QUERY = "{" + CHOSEN + "}"
INSTANCES = '{query="$query",instance=~"$instance"}'
"""Label selectors of PromQL.

QUERY: all series of the chosen query. INSTANCES: only those of chosen instances.
"""
GREEN, YELLOW, RED, BLUE = "green", "#EAB839", "red", "blue"
ZONES = ((None, BLUE), (0.8, GREEN), (0.9, RED))
"""001, chapter 3.3: under-used, stable, overload."""
FIRING = 'ALERTS{alertname=~"Evenflow.*",alertstate="firing",query=~"$query|"}'
"""Alerts that fire for the chosen query, and alerts without a query: those of parts that do not answer."""
Steps = Sequence[tuple[float | None, str]]
Query = tuple[str, str]
"""(PromQL, legend)."""


def steps(*some: tuple[float | None, str]) -> Any:
    """Thresholds: from each value on, its colour. None stands for the smallest value."""
    thresholds = [Threshold(value=value, color=color) for value, color in some]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(thresholds)


def number(
    title: str, description: str, query: str, unit: str, *colours: tuple[float | None, str], width: int = 4
) -> Any:
    """A panel with the present value. colours: from each value on, its colour. width: of 24 columns."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .thresholds(steps(*(colours or ((None, BLUE),))))
        .graph_mode(BigValueGraphMode.AREA)
        .no_value("not known")
        .with_target(_target(query, "", "A"))
        .span(width)
        .height(5)
    )


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    least: float | None = 0,
    bands: tuple[tuple[float | None, str], ...] = (),
    stacked: bool = False,
    steady: bool = False,
) -> Any:
    """A panel with values over time, of at most eight queries.

    least: lower end of the axis, None for what fits. bands: colours behind the lines, from each value on.
    stacked: whether values add up. steady: whether values hold until they jump, as p does. width: of 24
    columns.
    """
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .draw_style(GraphDrawStyle.LINE)
        .fill_opacity(40 if stacked else 5)
        .legend(
            looks.VizLegendOptions()
            .display_mode(LegendDisplayMode.TABLE)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(looks.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
        .span(width)
        .height(8)
    )
    if least is not None:
        panel.min(least)
    if stacked:
        panel.stacking(looks.StackingConfig().mode(StackingMode.NORMAL))
    if steady:
        panel.line_interpolation(LineInterpolation.STEP_AFTER)
    if bands:
        panel.thresholds(steps(*bands)).thresholds_style(
            looks.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.AREA)
        )
    # Grafana names the queries of a panel by letters.
    for name, (query, legend) in zip(ascii_uppercase[: len(queries)], queries, strict=True):
        panel.with_target(_target(query, legend, name))
    return panel


def heat(title: str, description: str, unit: str, query: Query, *, width: int = 24) -> Any:
    """A heatmap with a row for each series and a colour for each value.

    It stays readable with a hundred series.
    """
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .calculate(False)
        .cell_gap(0)
        .color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges").steps(64))
        .cell_values(heatmap.CellValues().unit(unit))
        .with_target(_target(*query, "A"))
        .span(width)
        .height(10)
    )


class _Mark(dashboard.AnnotationQuery):
    """A vertical line at each moment at which `query` has a value.

    text: its title, which may name labels of the query. Grafana's Prometheus data source reads the title from
    `titleFormat`, which the SDK's model lacks. So `build` adds it.
    """

    def __init__(self, name: str, colour: str, query: str, text: str) -> None:
        super().__init__()
        self.name(name).datasource(SOURCE).enable(True).icon_color(colour).expr(query)
        self._text = text

    def build(self) -> Any:
        """The annotation, with `titleFormat` in its JSON."""
        annotation = super().build()
        fields = annotation.to_json()
        # The dashboard asks each annotation for its JSON, so this one object answers otherwise than its
        # class.
        annotation.to_json = lambda: {**fields, "titleFormat": self._text}  # type: ignore[method-assign]
        return annotation


_MARKS = (
    _Mark(
        "plans",
        BLUE,
        f'max(changes(evenflow_plan_epoch{{{CHOSEN},part="partitioner"}}[$__rate_interval])) > 0',
        "a plan takes over",
    ),
    _Mark(
        "decisions",
        YELLOW,
        "sum by (outcome, cause) (increase(evenflow_decisions_total{"
        f'{CHOSEN},outcome=~"out|in|mixed"}}[$__rate_interval])) > 0',
        "scale {{outcome}}: {{cause}}",
    ),
)


def _target(query: str, legend: str, name: str) -> Any:
    return prometheus.Dataquery().expr(query).legend_format(legend).ref_id(name).range().datasource(SOURCE)


Row = tuple[str, Sequence[Any]]
"""The title of a row of panels, and its panels."""


def board(name: str, title: str, description: str, *rows: Row) -> Any:
    """A dashboard with its variables, links to the other dashboards, and rows of panels (title, panels)."""
    builder = (
        dashboard.Dashboard(title)
        .uid(f"evenflow-{name}")
        .description(description)
        .tags(["evenflow"])
        .refresh("5s")
        .time("now-15m", "now")
        .timezone("browser")
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("evenflow")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["evenflow"])
            .include_vars(True)
            .keep_time(True)
        )
        .with_variable(dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus"))
        .with_variable(_variable("query", "Query", "label_values(evenflow_build_info, query)"))
        .with_variable(
            _variable("instance", "Instance", f"label_values(evenflow_build_info{{{CHOSEN}}}, instance)")
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    )
    for mark in _MARKS:
        builder.annotation(mark)
    numbers = count(1)  # Grafana wants an id for each row and panel, unique in the dashboard
    for row, panels in rows:
        builder.with_row(dashboard.Row(row).id(next(numbers)))
        for panel in panels:
            builder.with_panel(panel.id(next(numbers)))
    return builder


def _variable(name: str, label: str, query: str) -> Any:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def quantile(share: str, metric: str, *, only: str = "") -> str:
    """PromQL of a quantile of a histogram.

    share: such as "0.99". only: further selectors, such as `,stage="fused"`.
    """
    chosen = "{" + CHOSEN + only + "}"
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{chosen}[$__rate_interval])))"
