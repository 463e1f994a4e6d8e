"""What `make audit` asks about the jars, and what it makes of the answers."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import ServiceError
from spark_consumers.jars.fetch import Coordinate, spark_jars_dir, spark_kafka_jars
from workbench.local.broker_jars import kafka_broker_jars
from workbench.supply.jar_audit import coordinates, findings, groups, report


@contextmanager
def database(against: dict[str, list[str]], *, answers: bool = True) -> Iterator[str]:
    """The address of a database that knows these identifiers, by the purl. answers: or only errors."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            result: list[dict[str, Any]] = [
                {"vulns": [{"id": name} for name in against[purl]]} if purl in against else {}
                for purl in (query["package"]["purl"] for query in body["queries"])
            ]
            self.send_response(200 if answers else 503)
            self.end_headers()
            self.wfile.write(json.dumps({"results": result}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def jar(file: Path, *inside: tuple[str, str, str]) -> Path:
    """A jar that names these (group, artifact, version)."""
    with zipfile.ZipFile(file, "w") as content:
        content.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        for group, artifact, version in inside:
            content.writestr(
                f"META-INF/maven/{group}/{artifact}/pom.properties",
                f"#made by hand\nversion={version}\ngroupId={group}\nartifactId={artifact}\n",
            )
    return file


def test_a_jar_is_known_by_what_it_says_or_by_its_group_and_so_is_what_is_shaded_into_it(
    tmp_path: Path,
) -> None:
    shading = jar(tmp_path / "outer-1.2.jar", ("org.a", "inner", "3.0"))
    assert coordinates(shading, {"outer": "org.b"}) == {
        Coordinate("org.a", "inner", "3.0"),
        Coordinate("org.b", "outer", "1.2"),
    }
    said = jar(tmp_path / "netty-all-4.1.2.Final-linux.jar", ("io.netty", "netty-all", "4.1.2.Final"))
    assert coordinates(said, {"netty-all": "another"}) == {Coordinate("io.netty", "netty-all", "4.1.2.Final")}
    milestone = jar(tmp_path / "bsp4j-2.1.0-M5.jar")
    assert coordinates(milestone, {"bsp4j": "ch.a"}) == {Coordinate("ch.a", "bsp4j", "2.1.0-M5")}
    assert coordinates(milestone, {}) == set()


def test_the_coordinates_of_every_jar_that_pyspark_ships_or_the_set_up_fetches_are_known() -> None:
    listed = groups()
    jars = [*spark_jars_dir().glob("*.jar"), *spark_kafka_jars(), *kafka_broker_jars()]
    assert len(jars) > 200
    assert [jar.name for jar in jars if not coordinates(jar, listed)] == []


def test_a_finding_is_named_and_fails_and_so_does_a_jar_that_nobody_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = jar(tmp_path / "sound-1.0.jar", ("org.a", "sound", "1.0"))
    weak = jar(tmp_path / "weak-2.0.jar", ("org.a", "weak", "2.0"))
    strange = jar(tmp_path / "strange-3.0.jar")
    with database({"pkg:maven/org.a/weak@2.0": ["GHSA-2", "CVE-1"]}) as address:
        assert report([sound], database=address) == 0
        assert capsys.readouterr().out == "1 artifacts asked about, 0 with findings, 0 jars unknown\n"
        assert report([sound, weak], database=address) == 1
        assert "org.a:weak:2.0  CVE-1 GHSA-2\n" in capsys.readouterr().out
        assert report([sound, strange], database=address) == 1
        assert "strange-3.0.jar  its coordinates are unknown" in capsys.readouterr().out


def test_answers_belong_to_their_questions_however_many_there_are() -> None:
    asked = [Coordinate("org.a", f"a{number}", "1") for number in range(1_100)]
    with database({"pkg:maven/org.a/a1099@1": ["GHSA-9"]}) as address:
        assert findings(asked, database=address) == {asked[-1]: ["GHSA-9"]}


def test_a_database_that_does_not_answer_is_no_clean_result() -> None:
    asked = [Coordinate("org.a", "a", "1")]
    with (
        database({}, answers=False) as address,
        pytest.raises(ServiceError, match="does not answer"),
    ):
        findings(asked, database=address)
    with pytest.raises(ServiceError, match="nothing is known about the jars"):
        findings(asked, database=address)
