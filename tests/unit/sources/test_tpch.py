"""TPC-H's lineitem, made by the real generator."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from evenflow.errors import ConfigError
from evenflow.sources.datasets import open_source
from evenflow.sources.formats import tpch
from evenflow.sources.source import SourceOptions

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "evenflow" / "tpch"


def test_lineitem_is_made_once_and_comes_in_order_of_shipment(cache: Path) -> None:
    options = SourceOptions(columns=("l_shipdate", "l_quantity", "streamed"))
    (batch,) = open_source("tpch:scale=0.001,rate=10", options).batches()
    dates = batch.columns.column("l_shipdate").to_pylist()
    assert len(dates) > 5_000
    assert dates == sorted(dates)
    assert batch.times[:3].tolist() == [0, 100, 200]
    file = cache / "scale-0.001" / "lineitem.csv"
    written = file.stat().st_mtime_ns
    open_source("tpch:scale=0.001", options)
    assert file.stat().st_mtime_ns == written
    assert [item.name for item in file.parent.iterdir()] == ["lineitem.csv"]


def test_a_row_has_what_is_named_of_its_order_and_of_its_customer() -> None:
    named = ("l_orderkey", "o_orderdate", "l_shipdate", "c_mktsegment")
    (batch,) = open_source("tpch:scale=0.001", SourceOptions(columns=named)).batches()
    (alone,) = open_source("tpch:scale=0.001", SourceOptions(columns=("l_orderkey",))).batches()
    rows = batch.columns
    assert rows.column_names == list(named)
    assert rows["l_orderkey"].to_pylist() == alone.columns["l_orderkey"].to_pylist()
    assert set(rows["c_mktsegment"].to_pylist()) <= {
        "AUTOMOBILE",
        "BUILDING",
        "FURNITURE",
        "HOUSEHOLD",
        "MACHINERY",
    }
    ordered = {(row["l_orderkey"], row["o_orderdate"]) for row in rows.to_pylist()}
    assert len(ordered) == len(set(rows["l_orderkey"].to_pylist()))
    assert all(row["o_orderdate"] < row["l_shipdate"] for row in rows.to_pylist())


def test_orders_with_their_customers_have_each_key_once_and_are_those_of_the_lineitems() -> None:
    named = ("o_orderkey", "o_orderdate", "c_mktsegment")
    (orders,) = open_source("tpch:scale=0.001,table=orders", SourceOptions(columns=named)).batches()
    of_lineitems = ("l_orderkey", "o_orderdate", "c_mktsegment")
    (rows,) = open_source("tpch:scale=0.001", SourceOptions(columns=of_lineitems)).batches()
    assert orders.columns.column_names == list(named)
    keys = orders.columns["o_orderkey"].to_pylist()
    assert keys == sorted(set(keys))
    beside = {tuple(row.values()) for row in orders.columns.to_pylist()}
    assert {tuple(row.values()) for row in rows.columns.to_pylist()} <= beside


def test_a_column_that_no_table_has_is_refused() -> None:
    for column in ("l_color", "o_color", "c_color"):
        with pytest.raises(ConfigError, match=column):
            open_source("tpch:scale=0.001", SourceOptions(columns=(column,)))


def test_the_ship_date_may_be_the_event_time() -> None:
    source = open_source("tpch:scale=0.001", SourceOptions(time="l_shipdate", time_unit="iso"))
    (batch,) = source.batches()
    assert batch.times.min() % 86_400_000 == 0
    assert batch.times.min() >= 694_224_000_000  # 1992-01-01


def test_a_scale_too_large_for_the_disk_is_refused_before_anything_is_made(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpch.shutil, "disk_usage", lambda folder: Usage(10**10, 0, 5 * 10**9))
    with pytest.raises(ConfigError, match=r"scale 10 needs about 7\.6 GB .* 5\.0 GB are free") as raised:
        open_source("tpch:scale=10")
    assert "XDG_CACHE_HOME" in str(raised.value.hint)
    assert not list((cache / "scale-10").iterdir())


def test_a_cache_folder_that_cannot_be_made_is_said(cache: Path) -> None:
    cache.parent.write_text("a file in its place")
    with pytest.raises(ConfigError, match="cannot be made"):
        open_source("tpch:scale=0.001")


def test_a_missing_generator_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tpch.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="needs the package tpchgen-cli") as raised:
        open_source("tpch:scale=0.001")
    assert raised.value.hint == "pip install 'evenflow[tpch]'"


def test_a_generator_that_fails_leaves_no_file(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(tpch, "_generator", lambda: "false")
    with pytest.raises(ConfigError, match="tpchgen-cli failed"):
        open_source("tpch:scale=0.001")
    assert not list((cache / "scale-0.001").iterdir())


@pytest.mark.parametrize("words", ["scale=0", "scale=-1", "scale=nan", "scale=1e9", "table=region"])
def test_options_that_mean_nothing_are_refused(words: str) -> None:
    with pytest.raises(ConfigError):
        open_source(f"tpch:{words}")
