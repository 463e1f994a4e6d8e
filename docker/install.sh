#!/bin/sh
# Install the locked packages of one extra into /opt/venv, each only if its SHA-256 is the locked one, and take out what no
# service runs. VENV and SOURCE are for trying it elsewhere.
set -eu
venv=${VENV:-/opt/venv} source=${SOURCE:-/opt/evenflow}
pip="$venv/bin/python -m pip install --disable-pip-version-check --quiet"
work=$(mktemp -d)
$pip --dry-run --report "$work/report.json" --constraint "$source/requirements.lock" --editable "$source[$1]"
"$venv/bin/python" "$source/docker/hashed.py" "$work/report.json" "$source/requirements.hashed.lock" > "$work/hashed.lock"
$pip --require-hashes --no-deps --requirement "$work/hashed.lock"
$pip --no-deps --editable "$source"
rm -rf "$work"
packages=$(echo "$venv"/lib/python3*/site-packages)
find "$packages" -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +
rm -rf "$packages"/pip "$packages"/pip-* "$packages"/setuptools "$packages"/setuptools-* \
    "$packages"/pyarrow/include "$packages"/pyspark/examples "$packages"/pyspark/data
# Its successor comes with the connector (spark_consumers/jars/fetch.py).
rm -f "$packages"/pyspark/jars/lz4-java-1.8.0.jar
rm -f "$venv"/bin/pip*
