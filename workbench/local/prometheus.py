"""A real Prometheus with evenflow's rules. It scrapes the parts of a pipeline on this machine."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from evenflow.errors import ServiceError
from workbench.local.broker_properties import HOST
from workbench.local.ports import free_ports
from workbench.local.processes import ChildProcess

RULES = Path(__file__).parents[2] / "monitoring" / "prometheus"
_PATIENCE = 30.0
_TIMEOUT = 10.0
Targets = Mapping[str, int | Sequence[int]]


class Prometheus:
    """A Prometheus server, as a context manager.

    folder: for its configuration, data and log. targets: job -> port or ports. every: seconds between
    scrapes. hold: for how many seconds an alert's condition must hold before the alert fires. None: as the
    rules say. Entering raises ServiceError if Prometheus is not on the path or does not start.
    """

    def __init__(
        self, folder: Path, targets: Targets, *, every: float = 5.0, hold: float | None = None
    ) -> None:
        self._folder = folder
        self._config = folder / "prometheus.yml"
        self.port = free_ports(1)[0]
        folder.mkdir(parents=True, exist_ok=True)
        for file in RULES.glob("*.rules.yml"):
            (folder / file.name).write_text(_with_waits(file.read_text(), hold, every))
        self._config.write_text(_configuration(targets, every))
        self._process: ChildProcess | None = None

    def __enter__(self) -> Prometheus:
        program = shutil.which("prometheus")
        if program is None:
            raise ServiceError(
                "there is no program prometheus on the path",
                hint=(
                    "install Prometheus, on Debian as root: apt-get"
                    " install --no-install-recommends prometheus"
                ),
            )
        command = [
            program,
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={HOST}:{self.port}",
        ]
        self._process = ChildProcess(command, log=self._folder / "prometheus.log", name="prometheus")
        deadline = time.monotonic() + _PATIENCE
        while not self._ready():
            if not self._process.alive or time.monotonic() > deadline:
                tail = self._process.tail(10)
                self._process.terminate()
                raise ServiceError(f"Prometheus does not start:\n{tail}")
            time.sleep(0.1)
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.terminate()

    @property
    def address(self) -> str:
        """The address of Prometheus's own pages."""
        return f"http://{HOST}:{self.port}/"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression gives now.
        Raises ServiceError with Prometheus's words if it is wrong.
        """
        answer = self._get("api/v1/query", query=expression)
        return list(answer["data"]["result"])

    def rules(self) -> set[str]:
        """The states of all rules: {"ok"} if every rule could be evaluated."""
        groups = self._get("api/v1/rules")["data"]["groups"]
        return {rule["health"] for group in groups for rule in group["rules"]}

    def metadata(self) -> set[str]:
        """Names of all metrics that Prometheus has scraped."""
        return set(self._get("api/v1/label/__name__/values")["data"])

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}-/ready", timeout=_TIMEOUT) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _get(self, path: str, **words: str) -> dict[str, Any]:
        url = f"{self.address}{path}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            raise ServiceError(
                f"Prometheus refuses {words}: {error.read().decode(errors='replace')}"
            ) from None
        except OSError as error:
            raise ServiceError(f"Prometheus does not answer: {error}") from None


def _configuration(targets: Targets, every: float) -> str:
    config = yaml.safe_load((RULES / "prometheus.yml").read_text())
    # The timeout is set too, because Prometheus refuses one that is longer than the interval (its default is
    # 10 s).
    config["global"] = dict.fromkeys(("scrape_interval", "evaluation_interval"), _span(every)) | {
        "scrape_timeout": _span(every)
    }
    config["scrape_configs"] = [job for job in config["scrape_configs"] if job["job_name"] in targets]
    for job in config["scrape_configs"]:
        ports = targets[job["job_name"]]
        several = [ports] if isinstance(ports, int) else ports
        job["static_configs"] = [{"targets": [f"{HOST}:{port}" for port in several]}]
    return str(yaml.safe_dump(config))


def _with_waits(text: str, hold: float | None, every: float) -> str:
    """The rules in `text`, evaluated every `every` seconds,
    with alerts that wait `hold` seconds (None: as they are).
    """
    rules = yaml.safe_load(text)
    for group in rules["groups"]:
        group["interval"] = _span(every)
        for rule in group["rules"]:
            if hold is not None and "for" in rule:
                rule["for"] = _span(hold)
    return str(yaml.safe_dump(rules))


def _span(seconds: float) -> str:
    return f"{round(1000 * seconds)}ms"
