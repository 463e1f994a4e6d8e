"""A schema registry for tests: Confluent's HTTP interface, as far as clients of evenflow use it, kept in
memory.

No registry that runs here could be had. Protobuf is answered as `format=serialized`, so that a test registers
either the text of a file of one message of plain fields, or a descriptor in base64.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from google.protobuf import descriptor_pb2

_FIELD = re.compile(r"optional (\w+) (\w+) = (\d+);")


class RegistryInMemory:
    """What was registered, and what was asked, with which headers.

    status: of all answers, unless 200. failures: answers that are 503 first. forbidden: ids that are 403.
    raw: id -> status and bytes of the answer. read_only: registering is 403. level: of compatibility,
    BACKWARD or NONE.
    """

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self.headers: list[Any] = []
        self.status = 200
        self.failures = 0
        self.forbidden: set[int] = set()
        self.raw: dict[int, tuple[int, bytes]] = {}
        self.read_only = False
        self.level = "BACKWARD"
        self.url = ""

    def register(self, text: str, form: str = "AVRO", subject: str = "s", references: Any = ()) -> int:
        """The id of a schema."""
        kept = {"schema": text, "schemaType": form, "references": list(references)}
        if kept not in self.schemas:
            self.schemas.append(kept)
        number = self.schemas.index(kept) + 1
        if number not in self.subjects.setdefault(subject, []):
            self.subjects[subject].append(number)
        return number

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON."""
        self.asked.append(path)
        if self.failures > 0:
            self.failures -= 1
            return 503, {"error_code": 50301, "message": "not yet"}
        if self.status != 200:
            return self.status, {"error_code": self.status, "message": "as the test has it"}
        if method == "GET" and path == "/subjects":
            return 200, list(self.subjects)
        if result := re.fullmatch(r"/schemas/ids/(\d+)", path):
            number = int(result[1])
            if number in self.raw:
                return self.raw[number]
            if number in self.forbidden:
                return 403, {
                    "error_code": 40301,
                    "message": f"User is denied operation Read on Schema: {number}",
                }
            if 1 <= number <= len(self.schemas):
                return 200, _shown(self.schemas[number - 1])
            return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
        if result := re.fullmatch(r"/subjects/(.+)/versions/latest", path):
            subject = unquote(result[1])
            if subject not in self.subjects:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
            number = self.subjects[subject][-1]
            about = {"subject": subject, "version": len(self.subjects[subject]), "id": number}
            return 200, _shown(self.schemas[number - 1]) | about
        if (result := re.fullmatch(r"/subjects/(.+)/versions", path)) and method == "POST":
            kind, subject = body.get("schemaType", "AVRO"), unquote(result[1])
            if self.read_only:
                return 403, {
                    "error_code": 40301,
                    "message": f"User is denied operation Write on Subject: {subject}",
                }
            if kind == "AVRO" and not self._fits(subject, body["schema"]):
                return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
            return 200, {"id": self.register(body["schema"], kind, subject, body.get("references") or ())}
        if (
            result := re.fullmatch(r"/compatibility/subjects/(.+)/versions/latest", path)
        ) and method == "POST":
            if unquote(result[1]) not in self.subjects:
                return 404, {"error_code": 40401, "message": "Subject not found."}
            return 200, {"is_compatible": self._fits(unquote(result[1]), body["schema"])}
        if (result := re.fullmatch(r"/subjects/([^/]+)", path)) and method == "POST":
            subject = unquote(result[1])
            if subject not in self.subjects:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
            for version, number in enumerate(self.subjects[subject], 1):
                if json.loads(self.schemas[number - 1]["schema"]) == json.loads(body["schema"]):
                    about = {"subject": subject, "version": version, "id": number}
                    return 200, _shown(self.schemas[number - 1]) | about
            return 404, {"error_code": 40403, "message": "Schema not found"}
        if result := re.fullmatch(r"/subjects/(.+)/versions/(\d+)", path):
            number = self.subjects[unquote(result[1])][int(result[2]) - 1]
            about = {"subject": unquote(result[1]), "version": int(result[2]), "id": number}
            return 200, _shown(self.schemas[number - 1]) | about
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _fits(self, subject: str, text: str) -> bool:
        """Whether a reader by the schema reads what was written by the newest of the subject (BACKWARD)."""
        if self.level == "NONE" or subject not in self.subjects:
            return True
        old = json.loads(self.schemas[self.subjects[subject][-1] - 1]["schema"])
        return _reads(json.loads(text), old)


def _reads(new: Any, old: Any) -> bool:
    """As far as schemas of results need it: records by their names and fields, anything else if it is
    equal.
    """
    if not (
        isinstance(new, dict) and isinstance(old, dict) and new.get("type") == old.get("type") == "record"
    ):
        return bool(new == old)
    before = {field["name"]: field["type"] for field in old["fields"]}
    return new["name"] == old["name"] and all(
        _reads(field["type"], before[field["name"]]) if field["name"] in before else "default" in field
        for field in new["fields"]
    )


def _shown(kept: dict[str, Any]) -> dict[str, Any]:
    text = kept["schema"]
    if kept["schemaType"] == "PROTOBUF" and text.startswith("syntax"):
        text = _serialized(text)
    return kept | {"schema": text}


def _serialized(text: str) -> str:
    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="evenflow", syntax="proto3")
    message = file.message_type.add(name="Record")
    for place, (kind, name, number) in enumerate(_FIELD.findall(text)):
        field = message.field.add(
            name=name, number=int(number), label=1, proto3_optional=True, oneof_index=place
        )
        field.type = field.Type.Value(f"TYPE_{kind.upper()}")
        message.oneof_decl.add(name=f"_{name}")
    return base64.b64encode(file.SerializeToString()).decode()


@contextmanager
def schema_registry(context: ssl.SSLContext | None = None) -> Iterator[RegistryInMemory]:
    """One that answers at its `url`, by TLS if there is a context."""
    kept = RegistryInMemory()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept, as a real registry keeps them
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            kept.headers.append(self.headers)
            body = json.loads(self.rfile.read(length) or b"null")
            status, told = kept.answer(self.command, urlsplit(self.path).path, body)
            data = told if isinstance(told, bytes) else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kept.url = f"http{'s' if context else ''}://127.0.0.1:{server.server_address[1]}"
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
