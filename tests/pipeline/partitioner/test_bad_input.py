"""What is wrong with records is in the rejected topic; what is wrong with settings or rights is said, exit
code 2.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from evenflow.settings import Settings
from partitioner_service.kafka.committed_state import all_states
from tests.pipeline.end_to_end import (
    BEGIN,
    Pipeline,
    Stream,
    as_toml,
    assert_exact,
    committed,
    evenflow,
    make_settings,
)
from tests.pipeline.planes import total
from tests.pipeline.routed import read_routed, rejections, write, write_end
from topics import clients
from workbench.local.broker import EmbeddedBroker

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(240)]

COLUMN_KEY = {
    "key": "k",
    "aggregates": {"n": "count", "s": "sum(i)"},
    "out_of_orderness": 0,
    "allowed_lateness": 0,
}


def refusal(settings: Settings, folder: Path, *words: str, **changed: tuple[str, str]) -> str:
    """What a command that must end with 2 writes; `changed` replaces text of the settings file."""
    text = as_toml(settings)
    for before, after in changed.values():
        assert before in text
        text = text.replace(before, after)
    file = folder / "refused.toml"
    file.write_text(text, encoding="utf-8")
    with evenflow(file, folder / "refused.log", *words) as child:
        assert child.wait(120) == 2, child.output()
    assert "Traceback" not in child.output()
    return child.output()


def test_each_kind_of_bad_record_is_rejected_with_its_reason_and_its_neighbours_are_routed(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query=COLUMN_KEY | {"max_jump": "1h", "jump_confirmations": 2},
        input={"partitions": 1},
    )
    good = {"k": "a", "t": BEGIN, "i": 1}
    rows: list[tuple[bytes, str, str]] = [
        (b'{"k":"a","t":', "unreadable", "it ends at byte 13"),
        (b"nothing like JSON", "unreadable", "the record is no JSON object"),
        (json.dumps({"t": BEGIN, "i": 1}).encode(), "unreadable", "key column 'k' is missing"),
        (json.dumps({"k": "a", "i": 1}).encode(), "unreadable", "time column 't' is missing"),
        (json.dumps(good | {"k": 5}).encode(), "unreadable", "'k' holds a number where text is needed (5)"),
        (json.dumps(good | {"t": "noon"}).encode(), "unreadable", 'where a whole number is needed ("noon")'),
        (
            json.dumps(good | {"i": "one"}).encode(),
            "unreadable",
            "column 'i' holds text where a whole number",
        ),
        (json.dumps(good | {"i": 2**63}).encode(), "unreadable", ""),
        (json.dumps(good | {"t": BEGIN + 10**10}).encode(), "jump", "max_jump"),
        (json.dumps(good | {"t": BEGIN + 10**13}).encode(), "ahead", "ahead of the clock, which showed"),
        (json.dumps(good | {"t": BEGIN - 60_000}).encode(), "late", "its partition's mark"),
    ]
    fine = json.dumps(good).encode()
    write(settings, [(0, record) for bad, _, _ in rows for record in (fine, bad)] + [(0, fine)])
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        pipeline.finish()
    result = rejections(settings)
    # the first tuple of a partition needs the same confirmation as any other jump (rule "jumps need
    # confirmation")
    assert [reason for reason, _, _ in result] == ["jump", *(reason for _, reason, _ in rows)]
    for (_, source, message), (value, _, detail) in zip(result[1:], rows, strict=True):
        assert message.value() == value
        assert detail in dict(message.headers())["evenflow-detail"].decode(), source
    (state,) = all_states(settings).values()
    assert (state.read, state.routed, state.rejected) == (23, 11, 12)
    assert read_routed(settings).counts.total() == 11


def test_a_live_topic_of_nothing_but_bad_records_flows_into_rejected_and_sigterm_ends_it(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    """The key column holds floats: once, nothing was read of such a topic for minutes, and SIGTERM took as
    long.
    """
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query=COLUMN_KEY | {"key": "amount"},
        input={"partitions": 2},
        partitioner={"block_tuples": 20_000},
    )
    rows = [{"amount": n / 4, "t": BEGIN + n, "i": n} for n in range(60_000)]
    write(settings, [(n % 2, row) for n, row in enumerate(rows)], end=False)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--unchecked")
        pipeline.wait_until(lambda: committed(settings) > 0)
        pipeline.stop("partition")
        assert total(all_states(settings)) in {(n, 0, n) for n in range(1, 60_001)}
        write(settings, [(0, {"amount": "a", "t": BEGIN, "i": 1})], end=False)
        write_end(settings, Counter({0: 30_001, 1: 30_000}))
        pipeline.start("partition", "--until-ended")
        pipeline.finish()
    assert total(all_states(settings)) == (60_001, 1, 60_000)
    result = rejections(settings)
    assert len(result) == 60_000
    assert Counter(message.partition() for _, _, message in result) == {0: 30_000, 1: 30_000}
    details = {dict(message.headers())["evenflow-detail"] for _, _, message in result}
    assert b"column 'amount' holds a number where text is needed (14999.75)" in details
    assert len(details) == 60_000


def test_settings_that_cannot_be_are_refused_by_the_command_with_what_would_do(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, partitioner={"name": "hashing"})
    unknown = refusal(settings, tmp_path, "partition", name=('name = "hashing"', 'name = "hashin"'))
    for known in ("hashin", "hashing", "shuffle", "pkg", "d-choices"):
        assert known in unknown
    uneven = refusal(settings, tmp_path, "aggregate", slide=('slide = "1s"', 'slide = "2s"'))
    assert "window (5s) must be a multiple of the slide (2s)" in uneven


@pytest.mark.long
def test_a_changed_query_is_refused_against_its_old_topics(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, query=COLUMN_KEY)
    write(settings, [(0, {"k": "a", "t": BEGIN, "i": 1})])
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        pipeline.finish()
    changed = {"slide": ('slide = "1s"', 'slide = "5s"')}
    for command in ("partition", "aggregate", "verify"):
        said = refusal(settings, tmp_path, command, **changed)
        assert 'query.slide: "1s" -> "5s"' in said
        assert "give the query a new name" in said
    workers = {"workers": ("workers = 3", "workers = 4")}
    assert "partitioner.max_workers: 3 -> 4 (to go on: partitioner.max_workers = 3, " in refusal(
        settings, tmp_path, "partition", **workers
    )


@pytest.mark.long
def test_a_changed_query_is_refused_against_its_old_checkpoint(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    stream = Stream(settings)
    stream.write(200)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    said = refusal(settings, tmp_path, "aggregate", slide=('slide = "1s"', 'slide = "5s"'))
    assert 'query.slide: "1s" -> "5s"' in said
    assert_exact(stream)


@pytest.mark.long
def test_the_neutral_login_reaches_every_client_and_missing_rights_are_named(
    query_name: str, tmp_path: Path
) -> None:
    """replay, partition, aggregate and verify, each by command, on a broker that asks for a login."""
    with EmbeddedBroker(sasl={"admin": 'pass"wo\\rd', "worker": "w"}) as broker:
        settings = make_settings(
            broker.settings(),
            query_name,
            tmp_path,
            query={"key": "k", "types": {"i": "int64"}, "aggregates": {"n": "count", "s": "sum(i)"}},
        )
        file = tmp_path / "tuples.jsonl"
        rows = [{"k": f"key{i % 7}", "t": BEGIN + 10 * i, "i": i} for i in range(2_000)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with Pipeline(settings, tmp_path) as pipeline:
            pipeline.start("replay", str(file))
            pipeline.finish()
            pipeline.run_to_the_end()
            pipeline.start("verify", "--json")
            pipeline.finish()
        report = json.loads((tmp_path / "verify.log").read_text().splitlines()[-1])
        assert (report["differences"], report["read"], report["ended"]) == (0, 2_000, True)
        assert report["rows"] > 7 * 20
        _allow(broker, query_name, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        _allow(broker, f"{query_name}.telemetry", AclOperation.WRITE)
        _allow(broker, f"{query_name}.snapshots", AclOperation.READ)
        _allow(broker, "evenflow-read", AclOperation.READ, kind=ResourceType.GROUP)
        worker = settings.model_copy(update={"kafka": broker.settings("worker")})
        said = refusal(worker, tmp_path, "aggregate")
        assert f"user worker has no right to write topic {query_name}.results" in said
        said = refusal(worker, tmp_path, "partition")
        assert "GROUP_AUTHORIZATION_FAILED" in said
        assert "ask for an ACL on that consumer group" in said
        wrong = {"password": ('sasl_password = "w"', 'sasl_password = "x"')}
        assert "check kafka.sasl_mechanism" in refusal(worker, tmp_path, "partition", **wrong)


def _allow(
    broker: EmbeddedBroker, prefix: str, *operations: AclOperation, kind: ResourceType = ResourceType.TOPIC
) -> None:
    bindings = [
        AclBinding(
            kind, prefix, ResourcePatternType.PREFIXED, "User:worker", "*", operation, AclPermissionType.ALLOW
        )
        for operation in operations
    ]  # fmt: skip
    client = clients.admin(broker.settings())
    for future in client.create_acls(bindings).values():
        future.result()
