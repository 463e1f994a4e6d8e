"""The whole pipeline, every service a process of its own, on a real broker and real Spark: always exact.

Each test ends with the same three comparisons (`end_to_end.assert_exact`): the results topic against brute
force, the rejected topic against the lateness rule by hand, and `verify`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from evenflow.partitioners import names
from tests.patience import wait_for
from tests.pipeline.end_to_end import (
    INVERTIBLE,
    Pipeline,
    Stream,
    assert_exact,
    batch_is_running,
    batches_done,
    committed,
    has_ended,
    make_settings,
    owners,
    transaction_is_open,
)
from tests.pipeline.planes import soon_missed
from tests.pipeline.routed import holders_of_the_hottest, read_routed
from tests.pipeline.spark_stream import Result
from workbench.local.broker import EmbeddedBroker
from workbench.local.broker_properties import Certificates
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280)]


def make_certificates(folder: Path) -> Certificates:
    """An authority of our own and an identity for 127.0.0.1."""
    authority = trustme.CA()
    identity = authority.issue_cert("127.0.0.1")
    made = Certificates(folder / "ca.pem", folder / "certificate.pem", folder / "key.pem")
    authority.cert_pem.write_to_path(made.authority)
    key = load_pem_private_key(identity.private_key_pem.bytes(), password=None)
    made.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for part, blob in enumerate(identity.cert_chain_pems):
        blob.write_to_path(made.certificate, append=part > 0)
    return made


NAMED = {"hashing", "shuffle", "evenflow", "d-choices", "pkg", "dalton", "w-choices", "cam", "dagreedy"}
SLIDING, TUMBLING = {"slide": "1s"}, {"slide": "5s"}


@pytest.mark.parametrize(
    ("partitioner", "query"),
    [
        pytest.param("evenflow", SLIDING, id="evenflow-sliding"),
        # totals and tumbling windows on real Spark are in test_spark_stages.py as well
        pytest.param(
            "hashing",
            SLIDING | {"aggregates": INVERTIBLE},
            id="hashing-sliding-totals",
            marks=pytest.mark.long,
        ),
        pytest.param("pkg", SLIDING, id="pkg-sliding", marks=pytest.mark.long),
        pytest.param("d-choices", SLIDING, id="d-choices-sliding", marks=pytest.mark.long),
        pytest.param("dalton", SLIDING, id="dalton-sliding", marks=pytest.mark.long),
        pytest.param("w-choices", TUMBLING, id="w-choices-tumbling", marks=pytest.mark.long),
        pytest.param("cam", SLIDING, id="cam-sliding", marks=pytest.mark.long),
        pytest.param("dagreedy", SLIDING, id="dagreedy-sliding", marks=pytest.mark.long),
        pytest.param("hashing", TUMBLING, id="hashing-tumbling", marks=pytest.mark.long),
        pytest.param(
            "shuffle", SLIDING | {"aggregates": INVERTIBLE}, id="shuffle-sliding", marks=pytest.mark.long
        ),
        *(
            pytest.param(name, SLIDING, id=f"{name}-too", marks=pytest.mark.long)
            for name in names()
            if name not in NAMED
        ),
    ],
)
def test_every_partitioner_and_kind_of_window_gives_exactly_the_direct_results(
    kafka_settings: Any, query_name: str, tmp_path: Path, partitioner: str, query: dict[str, Any]
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query=query,
        partitioner={"name": partitioner},
        spark={"buckets": 3},
    )
    stream = Stream(settings)
    stream.write(4_000, large=True)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = assert_exact(stream)
    assert report.rejected > 50
    if partitioner == "evenflow":
        held = holders_of_the_hottest(read_routed(settings), settings.query.panes_per_window)
        assert median(held) > 1, "the hottest key was not split, so there was nothing to merge"


@pytest.mark.long
def test_an_input_of_nothing_but_end_markers_gives_no_result_and_ends(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    stream = Stream(settings)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = assert_exact(stream)
    assert (report.windows, report.rows, report.read) == (0, 0, 0)


def test_partitioner_and_application_killed_or_stopped_in_mid_stream_go_on_exactly(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        soon_missed(kafka_settings),
        query_name,
        tmp_path,
        partitioner={"commit_interval": 1_000, "block_tuples": 200},
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        pipeline.start("aggregate")
        stream.write(1_500)
        pipeline.wait_until(lambda: committed(settings) > 0)
        stream.write(1_000)
        pipeline.wait_until(lambda: transaction_is_open(settings))
        pipeline.kill("partition")
        pipeline.start("partition")
        pipeline.wait_until(lambda: committed(settings) == 2_500 and batches_done(settings, "fused") > 0)
        stream.write(2_000)
        pipeline.wait_until(lambda: batch_is_running(settings, "fused"))
        pipeline.kill("aggregate")
        batches = batches_done(settings, "fused")
        pipeline.start("aggregate")
        stream.write(500)
        pipeline.wait_until(lambda: batches_done(settings, "fused") > batches)
        stream.write(1_000)
        pipeline.stop("partition")
        pipeline.stop("aggregate")
        assert not batch_is_running(settings, "fused"), "it stopped between micro-batches"
        stream.end()
        pipeline.run_to_the_end()
    assert_exact(stream)


@pytest.mark.more
def test_two_partitioners_rebalance_with_open_transactions_and_the_results_stay_exact(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        soon_missed(kafka_settings),
        query_name,
        tmp_path,
        partitioner={"commit_interval": 2_000, "block_tuples": 200},
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("aggregate", "--until-ended")
        pipeline.start("partition", "--instance", "a", name="a")
        stream.write(1_000)
        pipeline.wait_until(lambda: committed(settings) > 0)
        pipeline.start("partition", "--instance", "b", name="b")

        def joined() -> bool:
            stream.write(50)
            return owners(settings) == [2, 2] and transaction_is_open(settings)

        pipeline.wait_until(joined)
        stream.write(500)
        pipeline.stop("a")
        stream.write(500)
        pipeline.start("partition", "--instance", "a", name="a")
        pipeline.wait_until(joined)
        pipeline.wait_until(lambda: transaction_is_open(settings) or stream.write(50))
        pipeline.kill("b")
        stream.write(500)
        stream.end()
        # not --until-ended: the survivor may be done with its own partitions before it gets those of the dead
        pipeline.wait_until(lambda: has_ended(settings))
        pipeline.stop("a")
        pipeline.finish()
    assert_exact(stream)


@pytest.mark.long
def test_parquet_results_by_more_instances_than_partitions_are_exact_and_a_file_too_many_is_found(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    target = tmp_path / "results"
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        input={"partitions": 1},
        results={"sink": "parquet", "path": str(target)},
    )
    stream = Stream(settings)
    stream.write(1_500, large=True)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start_instances("--until-ended", names=("a", "b"))
        pipeline.start("aggregate", "--until-ended")
        pipeline.finish()
    result: Result = {}
    with duckdb.connect() as db:
        rows = db.execute(
            "SELECT * REPLACE (epoch_ms(window_start) AS window_start, epoch_ms(window_end) AS window_end) "
            f"FROM read_parquet('{target}/*.parquet')"
        )
        names = [column[0] for column in rows.description or ()]
        for values in rows.fetchall():
            row = dict(zip(names, values, strict=True))
            at = (row.pop("window_start"), row.pop("key"))
            assert row.pop("window_end") == at[0] + settings.query.window
            assert at not in result, "a window was emitted twice"
            result[at] = row
    assert_exact(stream, result)
    file = next(target.glob("*.parquet"))
    shutil.copy(file, target / "a-copy.parquet")
    assert set(verify(settings).kinds) == {"duplicate"}


@pytest.mark.long  # test_batches.py kills an instance in the split wiring
def test_the_split_wiring_in_two_applications_survives_the_death_of_each(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        spark={"wiring": "split", "buckets": 3, "max_frames_per_batch": 20},
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        pipeline.start("combine")
        pipeline.start("reduce")
        stream.write(1_500)
        for stage in ("combine", "reduce"):
            pipeline.wait_until(lambda stage=stage: batches_done(settings, stage) > 0)  # type: ignore[misc]
            stream.write(1_000)
            pipeline.wait_until(lambda stage=stage: batch_is_running(settings, stage))  # type: ignore[misc]
            pipeline.kill(stage)
            done = batches_done(settings, stage)
            pipeline.start(stage)
            stream.write(500)
            pipeline.wait_until(lambda stage=stage, done=done: batches_done(settings, stage) > done)  # type: ignore[misc]
        for name in ("partition", "combine", "reduce"):
            pipeline.stop(name)
        stream.end()
        for name in ("partition", "combine", "reduce"):
            pipeline.start(name, "--until-ended")
        pipeline.finish()
    assert_exact(stream)


@pytest.mark.long
def test_every_client_speaks_tls_with_certificates_on_both_sides_and_a_login(
    query_name: str, tmp_path: Path
) -> None:
    tls = make_certificates(tmp_path)
    with EmbeddedBroker(tls=tls, sasl={"admin": 'pass"word'}) as broker:
        kafka = broker.settings()
        assert kafka.security_protocol == "SASL_SSL"
        settings = make_settings(kafka, query_name, tmp_path)
        stream = Stream(settings)
        stream.write(2_000)
        stream.end()
        with Pipeline(settings, tmp_path) as pipeline:
            pipeline.run_to_the_end()
        assert_exact(stream)


@pytest.mark.more
def test_a_broker_killed_in_mid_stream_costs_time_and_nothing_else(query_name: str, tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path / "broker") as broker:
        settings = make_settings(broker.settings(), query_name, tmp_path)
        stream = Stream(settings)
        stream.write(1_500)
        with Pipeline(settings, tmp_path) as pipeline:
            pipeline.start("partition")
            pipeline.start("aggregate")
            pipeline.wait_until(lambda: batches_done(settings, "fused") > 0)
            stream.write(1_500)
            broker.kill()
            broker.restart()
            stream.write(500)
            # Each goes on, or ends with a status that makes a supervisor start it again (librdkafka's
            # transaction calls may hang after a broker's crash: the watchdog ends the process then); none
            # stands still.
            partitioner = pipeline.running["partition"]
            wait_for(
                lambda: committed(settings) == 3_500 or partitioner.returncode in (2, 75), partitioner.output
            )
            for name, child in list(pipeline.running.items()):
                if child.alive:
                    pipeline.stop(name)
            pipeline.running.clear()
            stream.end()
            pipeline.run_to_the_end()
        assert_exact(stream)
