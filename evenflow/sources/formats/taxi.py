"""Taxi rides in the format of the DEBS 2015 Grand Challenge: 17 columns without a header,
in order of the drop-off.

`taxi:rides.csv` reads a file (also .gz or .zip). `taxi:tuples=20000,taxis=2000,rate=5,seed=1` generates
rides, in which some taxis drive more than others.

Four further columns hold cells of the challenge's grid, for a query that names them: `pickup_cell` and
`dropoff_cell` (500 m), `pickup_area` and `dropoff_area` (250 m). They are null for places outside the grid.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.generation.rank_laws import numbered_times
from evenflow.grammar.column_types import ColumnType
from evenflow.settings.word_options import WordOptions
from evenflow.sources.grid import cells
from evenflow.sources.recorded import DataSet, Draw

COLUMNS: dict[str, ColumnType] = {
    "medallion": "string",
    "hack_license": "string",
    "pickup_datetime": "string",
    "dropoff_datetime": "string",
    "trip_time_in_secs": "int64",
    "trip_distance": "float64",
    "pickup_longitude": "float64",
    "pickup_latitude": "float64",
    "dropoff_longitude": "float64",
    "dropoff_latitude": "float64",
    "payment_type": "string",
    "fare_amount": "float64",
    "surcharge": "float64",
    "mta_tax": "float64",
    "tip_amount": "float64",
    "tolls_amount": "float64",
    "total_amount": "float64",
}
_FIRST = 1_356_998_400_000
"""2013-01-01T00:00:00Z in ms, when the challenge's rides begin."""
_MANHATTAN = (-73.98, 40.75)
"""Longitude and latitude around which generated rides begin and end."""


def rides(words: WordOptions) -> pa.Table:
    """Generated rides, in the order of their drop-offs, which come at `rate` per second."""
    draw = Draw.of(words, tuples=20_000, rate=5.0)
    taxis = words.integer("taxis", 2_000, least=1)
    driven = draw.ranks(taxis, 0.3)
    ended = (_FIRST + numbered_times(0, draw.tuples, rate=draw.rate)) // 1000
    seconds = 60 + draw.random.gamma(2.0, 300.0, draw.tuples).astype(np.int64)
    miles = np.round(seconds * draw.random.uniform(0.002, 0.006, draw.tuples), 2)
    fare = np.round(2.5 + 2.5 * miles, 1)
    tip = np.round(fare * draw.random.choice([0.0, 0.1, 0.2], draw.tuples), 2)
    names = [f"{taxi:032X}" for taxi in range(taxis)]
    start, end = _places(draw), _places(draw)
    zeros = np.zeros(draw.tuples)
    columns = [
        draw.texts(names, driven),
        draw.texts(names[::-1], driven),
        _clock(ended - seconds),
        _clock(ended),
        seconds,
        miles,
        *start,
        *end,
        draw.texts(["CSH", "CRD"], (tip > 0).astype(np.int64)),
        fare,
        zeros,
        zeros + 0.5,
        tip,
        zeros,
        np.round(fare + 0.5 + tip, 2),
    ]
    return pa.table(columns, names=list(COLUMNS))


def _places(draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """(longitudes, latitudes), drawn around the middle of the city."""
    longitude, latitude = (
        np.round(draw.random.normal(middle, 0.03, draw.tuples), 6) for middle in _MANHATTAN
    )
    return longitude, latitude


def _cell(end: str, across: int, table: pa.Table) -> pa.Array:
    return cells(table.column(f"{end}_longitude"), table.column(f"{end}_latitude"), across=across)


def _clock(seconds: np.ndarray) -> pa.Array:
    return pc.strftime(pa.array(seconds).cast(pa.timestamp("s")), format="%Y-%m-%d %H:%M:%S")


DATA_SET = DataSet(
    name="taxi",
    summary="taxi rides in the format of DEBS 2015: a file, or generated",
    layout="a CSV file without a header, 17 columns, in order of the drop-off",
    licence="none is stated with the file of DEBS 2015",
    columns=COLUMNS,
    key="medallion",
    time="dropoff_datetime",
    time_unit="iso",
    make=rides,
    places={
        f"{end}_{grid}": partial(_cell, end, across)
        for grid, across in (("cell", 300), ("area", 600))
        for end in ("pickup", "dropoff")
    },
)
FORMAT = DATA_SET.format()
