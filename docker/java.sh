#!/bin/sh
# A Java 17 runtime at /usr/lib/jvm/default: the base's own, or Debian's.
set -eu
if ! command -v java >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless
    rm -rf /var/lib/apt/lists/*
fi
home=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")
mkdir -p /usr/lib/jvm
ln -sfn "$home" /usr/lib/jvm/default
