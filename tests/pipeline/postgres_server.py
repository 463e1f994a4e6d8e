"""A server of Postgres for tests: of Debian's package, on loopback, by a user that is not root, in a
folder that goes.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ground.debian import install
from tests.patience import PATIENCE

PASSWORD = "q7-loopback"
"""Of the user `evenflow`, who owns the database `rows`."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server, and stop it in the end. Yields the address of its database, without a table and the
    password.
    """
    install({"postgresql": "pg_ctlcluster"})
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda found: int(found.parent.name))
    # Not pytest's folder: only the user who runs the tests may look into it.
    home = Path(tempfile.mkdtemp(prefix="evenflow-postgres-"))
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        os.chown(home, pwd.getpwnam(user).pw_uid, -1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(program: str, *words: str) -> None:
        # Not pipes: the server would keep them open.
        with tempfile.TemporaryFile("w+") as said:
            command = [str(programs / program), *words]
            done = subprocess.run(
                command, user=user, cwd=home, stdout=said, stderr=said, timeout=120 * PATIENCE, check=False
            )
            said.seek(0)
            assert done.returncode == 0, f"{program}: {said.read()}"

    data, log = str(home / "data"), str(home / "log")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {home} -c fsync=off"
    try:
        run(
            "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        )
        run("pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start")
        try:
            make = f"CREATE USER evenflow PASSWORD '{PASSWORD}'; CREATE DATABASE rows OWNER evenflow"
            for statement in make.split("; "):
                run("psql", "-h", str(home), "-p", str(port), "-U", "postgres", "-c", statement)
            yield f"postgresql://evenflow@127.0.0.1:{port}/rows"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
