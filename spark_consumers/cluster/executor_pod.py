"""What runs in an executor's pod on Kubernetes: `python -m spark_consumers.cluster.executor_pod executor`.

Spark's scheduler makes the pod and describes the executor in the pod's environment. It expects the image to
start a Java process from this description. The image of Spark's own distribution does that with a shell
script, which pyspark does not ship.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from spark_consumers.jars.fetch import java_command, spark_jars_dir

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTION = re.compile(r"SPARK_JAVA_OPT_([0-9]+)")
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command(environment: Mapping[str, str], *, java: str, jars: Path, folder: str) -> list[str]:
    """The Java command of the executor that this environment describes.

    java: path of the program. jars: folder of pyspark's jars. folder: the working folder, where Spark puts
    further jars. Raises KeyError with the name of a variable that is missing.
    """
    numbered = ((_OPTION.fullmatch(name), value) for name, value in environment.items())
    # Sorted as numbers: a later Java option wins over an earlier one, and as text 10 would come before 9.
    options = sorted((int(match[1]), value) for match, value in numbered if match)
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    # Spark sets SPARK_CLASSPATH from `spark.executor.extraClassPath`, so it comes first.
    named = ("SPARK_CLASSPATH", "SPARK_EXTRA_CLASSPATH", "SPARK_CONF_DIR")
    places = [*(environment.get(name) for name in named), f"{jars}/*", folder]
    arguments = [word for option, name in _ARGUMENTS.items() for word in (option, environment[name])]
    return [
        java,
        *(value for _, value in options),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        os.pathsep.join(place for place in places if place),
        _BACKEND,
        *arguments,
    ]


def main() -> None:
    """Replace this Python process by the executor's Java process."""
    if sys.argv[1:] != ["executor"]:
        sys.exit("Spark's scheduler starts this, with the word `executor`")
    os.environ.setdefault("SPARK_HOME", str(spark_jars_dir().parent))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        words = command(os.environ, java=java_command(), jars=spark_jars_dir(), folder=os.getcwd())
    except KeyError as missing:
        sys.exit(f"{missing} is not in the environment: this is no executor's pod")
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
