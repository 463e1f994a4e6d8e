#!/bin/sh
# copy-secrets.sh [--tools] [FROM] [TO] [QUERY]
#
# Copies what the parts need to log in from Kafka's namespace into that of the pipeline: the certificate of the authority, and each
# user's own certificate and key. The keys of the authorities stay. Run it again when Strimzi has renewed a certificate.
# --tools: that of `verify`, too. It may read every topic, and a driver can mount it there, so delete it afterwards.
set -eu
umask 077
parts="partitioner combiner reducer controller"
if [ "${1:-}" = --tools ]; then
    parts="$parts tools"
    shift
fi
case ${1:-} in -*) echo "$0: unknown option $1" >&2; exit 2 ;; esac
from=${1:-kafka} to=${2:-evenflow} query=${3:-evenflow}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

copy() {
    name=$1
    shift
    mkdir "$folder/$name"
    for key in "$@"; do
        kubectl --namespace "$from" get secret "$name" \
            --output "go-template={{index .data \"$key\" | base64decode}}" > "$folder/$name/$key"
    done
    kubectl --namespace "$to" create secret generic "$name" --from-file="$folder/$name" --dry-run=client --output=yaml \
        | kubectl apply --filename -
}

copy kafka-cluster-ca-cert ca.crt
for part in $parts; do
    copy "$query-$part" user.crt user.key
done
