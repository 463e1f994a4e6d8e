"""A worker of Spark's that connects to Java before it imports anything.

Spark 4.0 starts a Python process on the driver for each reducer, before the first micro-batch, and waits 10 s
for it to connect. It has no setting for that. pyspark's module first imports pandas and more, which takes
longer on a busy machine, and the query failed. So `worker_python` runs this file in its place: it connects
and shows the secret at once, and then runs pyspark's module, which finds the connection made. Java waits for
what comes next as long as it takes.

Usage: `early_answer.py -m MODULE`, as Spark calls Python.
"""

# Nothing heavy may be imported here: neither pyspark nor what is of evenflow.
import os
import runpy
import socket
import struct
import sys
from typing import Any

_WORD = struct.Struct("!i")


def connection() -> tuple[Any, socket.socket]:
    """The connection to Java, which has taken the secret.
    Raises OSError if nobody answers or the secret is wrong.

    It is what pyspark's `local_connect_and_auth` does.
    """
    host = "::1" if os.environ.get("SPARK_PREFER_IPV6", "false").lower() == "true" else "127.0.0.1"
    secret = os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
    timeout = int(os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT", "15"))
    sock = socket.create_connection((host, int(os.environ["PYTHON_WORKER_FACTORY_PORT"])), timeout)
    file = sock.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", "65536")))
    file.write(_WORD.pack(len(secret)) + secret)
    file.flush()
    (length,) = _WORD.unpack(file.read(_WORD.size))
    if file.read(length) != b"ok":
        raise OSError("Java does not take the secret")
    return file, sock


def main() -> None:
    """Connect, then run the module that Spark has named."""
    port, connections = os.environ["PYTHON_WORKER_FACTORY_PORT"], [connection()]
    # What `python -m` does: the module of a user's own aggregate may lie in the working directory.
    sys.path[0] = os.getcwd()
    import pyspark.util

    util: Any = pyspark.util
    connect = util.local_connect_and_auth

    def connected(to: Any, secret: str) -> Any:
        # The process may connect to other ports, for broadcast values.
        return connections.pop() if connections and str(to) == port else connect(to, secret)

    util.local_connect_and_auth = connected
    runpy.run_module(sys.argv[2], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
