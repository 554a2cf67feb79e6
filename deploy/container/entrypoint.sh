#!/bin/sh
# Starts a broker by the variables of the official Kafka image: KAFKA_LISTENERS is listeners, and so on.
#   KAFKA_LOG_DIRS       volumes; the first also holds the metadata, and logs are in a folder `logs` of each
#   CLUSTER_ID           the cluster's id at the first start
#   KAFKA_SSL_KEYSTORE_FILENAME, _CREDENTIALS and the like: files in /etc/kafka/secrets
#   /mnt/shared/config/server.properties: settings; variables win
# Words after the image's name are options of `penstock serve`.
set -eu

secrets=${PENSTOCK_SECRETS:-/etc/kafka/secrets} file=${PENSTOCK_CONFIG:-/mnt/shared/config/server.properties}
unset PENSTOCK_SECRETS PENSTOCK_CONFIG

fail() {
  echo "penstock: $1" >&2
  exit 2
}

# from_file VARIABLE NAMING: the first line of the secret that $NAMING names becomes $VARIABLE.
from_file() {
  eval "name=\${$2:-}"
  [ -n "$name" ] || return 0
  [ -r "$secrets/$name" ] || fail "$2: $secrets/$name is not there or cannot be read"
  IFS= read -r line <"$secrets/$name" || [ -n "$line" ] || fail "$2: $secrets/$name is empty"
  export "$1=$line"
  unset "$2"
}

# located VARIABLE NAMING: the path of the file that $NAMING names becomes $VARIABLE.
located() {
  eval "name=\${$2:-}"
  [ -n "$name" ] || return 0
  [ -r "$secrets/$name" ] || fail "$2: $secrets/$name is not there or cannot be read"
  export "$1=$secrets/$name"
  unset "$2"
}

located KAFKA_SSL_KEYSTORE_LOCATION KAFKA_SSL_KEYSTORE_FILENAME
located KAFKA_SSL_TRUSTSTORE_LOCATION KAFKA_SSL_TRUSTSTORE_FILENAME
from_file KAFKA_SSL_KEYSTORE_PASSWORD KAFKA_SSL_KEYSTORE_CREDENTIALS
from_file KAFKA_SSL_KEY_PASSWORD KAFKA_SSL_KEY_CREDENTIALS
from_file KAFKA_SSL_TRUSTSTORE_PASSWORD KAFKA_SSL_TRUSTSTORE_CREDENTIALS

# in_file NAME: what the file of settings has for it.
in_file() {
  [ ! -f "$file" ] || sed -n "s/[[:space:]]*\$//; s/^[[:space:]]*$1[[:space:]]*[=:][[:space:]]*//p" "$file" | tail -n 1
}

volumes=${KAFKA_LOG_DIRS:-${KAFKA_LOG_DIR:-}}
volumes=${volumes:-$(in_file 'log\.dirs')}
volumes=${volumes:-$(in_file 'log\.dir')}
volumes=${volumes:-/var/lib/kafka/data}
unset KAFKA_LOG_DIR
data=${volumes%%,*}
KAFKA_LOG_DIRS=$(echo "$volumes" | sed 's|/*,|,|g; s|/*$||; s|,|/logs,|g; s|$|/logs|')
export KAFKA_LOG_DIRS

if [ ! -f "$file" ]; then
  file=
  if [ -z "${KAFKA_LISTENERS:-}" ]; then  # as the image's own file has it
    export KAFKA_LISTENERS=PLAINTEXT://:9092
    export KAFKA_ADVERTISED_LISTENERS="${KAFKA_ADVERTISED_LISTENERS:-PLAINTEXT://localhost:9092}"
  fi
fi

if [ -n "${CLUSTER_ID:-}" ] && [ ! -e "${KAFKA_LOG_DIRS%%,*}/meta.properties" ] && [ ! -e "$data/meta.properties" ]; then
  settings=$(mktemp)
  echo "log.dirs=$KAFKA_LOG_DIRS" >"$settings"
  node=${KAFKA_NODE_ID:-${KAFKA_BROKER_ID:-}}
  node=${node:-$(in_file 'node\.id')}
  node=${node:-$(in_file 'broker\.id')}
  [ -z "$node" ] || echo "node.id=$node" >>"$settings"
  told=$(kafka-storage.sh format --ignore-formatted -t "$CLUSTER_ID" -c "$settings" 2>&1) || fail "CLUSTER_ID: $told"
  rm "$settings"
fi

set -- penstock serve ${file:+"$file"} --dir "$data" "$@"
[ $$ = 1 ] || exec "$@"
# Nothing in a container can pause its process 1, as `penstock backup` has to: this shell stays, and passes signals on.
"$@" &
broker=$!
trap 'kill -TERM $broker' TERM INT
while :; do
  code=0
  wait $broker || code=$?
  kill -0 $broker 2>/dev/null || exit $code  # else a signal ended the wait
done
