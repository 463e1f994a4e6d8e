#!/bin/sh
# Install the locked packages of one extra into /opt/venv, and take out what no service runs.
set -eu
/opt/venv/bin/python -m pip install --disable-pip-version-check --quiet \
    --constraint requirements.lock --editable "/opt/evenflow[$1]"
packages=$(echo /opt/venv/lib/python3*/site-packages)
find "$packages" -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +
rm -rf "$packages"/pip "$packages"/pip-* "$packages"/setuptools "$packages"/setuptools-* \
    "$packages"/pyarrow/include "$packages"/pyspark/examples "$packages"/pyspark/data
rm -f /opt/venv/bin/pip*
