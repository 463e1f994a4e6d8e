"""An S3 API on loopback, in this process: moto's server. What lies in it outlives `stop` and `start`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import moto.settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from evenflow.settings import Settings

BUCKET = "checkpoints"
REGION = "us-east-1"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "evenflow",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class _Handler(WSGIRequestHandler):
    """Says `100 Continue` once: Python's handler says it, too, and the client takes the second one for the answer."""

    def handle_expect_100(self) -> bool:
        return True

    def log_request(self, *words: Any) -> None:
        """Nothing."""


@dataclass
class ObjectStore:
    """A store with one bucket. port: stays the same over a stop and a start."""

    port: int = 0
    _server: Any = field(default=None, init=False)

    def start(self) -> None:
        """Answer requests."""
        app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", self.port, app, threaded=True, request_handler=_Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """All credentials are refused."""
        ActionAuthenticatorMixin.request_count = 0
        moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
        try:
            yield
        finally:
            moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def conf(self) -> dict[str, str]:
        """`[spark.conf]` for it."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": REGION,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }

    def client(self) -> Any:
        """As boto3 has it."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
        )

    def upload(self, folder: Path, settings: Settings) -> None:
        """Every file of a folder of checkpoints, to where these settings have them."""
        client, prefix = self.client(), settings.spark.checkpoint_folder.removeprefix(f"s3a://{BUCKET}/")
        for file in (path for path in folder.rglob("*") if path.is_file()):
            client.upload_file(str(file), BUCKET, f"{prefix}/{file.relative_to(folder)}")

    def names(self, settings: Settings, folder: str) -> list[str]:
        """Names of the objects in a folder of the query's checkpoint, without what is still being written."""
        prefix = f"{settings.query_checkpoint.removeprefix(f's3a://{BUCKET}/')}/{folder}/"
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        return [key.removeprefix(prefix) for key in keys if not key.endswith(".tmp")]


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """One that is running, and empty but for its bucket."""
    store = ObjectStore()
    store.start()
    try:
        store.client().create_bucket(Bucket=BUCKET)
        yield store
    finally:
        store.stop()
