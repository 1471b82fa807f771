#!/usr/bin/env bash
# Downloads a Kafka broker and Spark's Kafka connector into the cache, once, with Maven.
# scripts/kafka.sh             download what is missing
# scripts/kafka.sh --path      only print the folder of the broker's jars
# scripts/kafka.sh --jars      only print the connector's jars, as `spark.jars` wants them
# scripts/kafka.sh --connector only print the version of the connector
set -euo pipefail

broker=4.1.0
# The newest connector that is known to work with PySpark 4.3.0; 4.0.0 does not. The documentation names it too, and a
# test of tests/test_documentation.py that it is this one.
connector=4.2.0
# Its helper for delegation tokens: registries do not have that of 4.2.0.
tokens=4.0.0

cache=${ELASTIC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spark-elastic}
broker_folder=$cache/kafka-$broker
connector_folder=$cache/kafka-connector-$connector-$tokens

case "${1:-}" in
--path)
    echo "$broker_folder"
    exit
    ;;
--connector)
    echo "$connector"
    exit
    ;;
--jars)
    printf '%s\n' "$connector_folder"/*.jar | paste -sd,
    exit
    ;;
esac
[ -d "$broker_folder" ] && [ -d "$connector_folder" ] && exit

scripts=$(dirname "$0")
missing() {
    echo "Kafka is not downloaded: $1. Its tests are skipped." >&2
    exit
}
"${JAVA_HOME:+$JAVA_HOME/bin/}java" -version >/dev/null 2>&1 || missing "it needs Java 17"
if ! command -v mvn >/dev/null; then
    echo "installing Maven, which downloads Kafka for the tests ..."
    bash "$scripts/apt.sh" --no-install-recommends maven || missing "it needs Maven; install it with: sudo apt-get install maven"
fi

mkdir -p "$cache"
if command -v flock >/dev/null; then
    exec 9>"$cache/kafka.lock"
    flock 9
fi
work=$(mktemp -d "$cache/kafka.XXXXXX")
trap 'rm -rf "$work"' EXIT

# download FOLDER DEPENDENCY...: copies the jars of dependencies, with all that they need at run time, into FOLDER.
# A dependency is group:artifact:version, or with :alone at its end without what it needs.
download() {
    local folder=$1 group artifact version alone dependencies=
    [ -d "$folder" ] && return
    shift
    for dependency in "$@"; do
        IFS=: read -r group artifact version alone <<<"$dependency"
        dependencies+="<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>"
        if [ -n "$alone" ]; then
            dependencies+="<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
        fi
        dependencies+="</dependency>"
    done
    cat >"$work/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>elastic</groupId><artifactId>jars</artifactId><version>1</version>
<dependencies>$dependencies</dependencies></project>
EOF
    if ! timeout 300 mvn -q -B -f "$work/pom.xml" -DoutputDirectory="$work/jars" -DincludeScope=runtime \
        org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies 9>&- >"$work/log" 2>&1; then
        tail -n 5 "$work/log" >&2
        missing "Maven failed, see above; check the network and Maven's settings"
    fi
    mv "$work/jars" "$folder" # atomic: no process sees half of the jars
}

echo "downloading Kafka $broker and Spark's connector $connector into the cache, once ..."
download "$broker_folder" org.apache.kafka:kafka_2.13:$broker org.slf4j:slf4j-simple:1.7.36
# The rest of what the connector needs comes with Spark.
download "$connector_folder" org.apache.spark:spark-sql-kafka-0-10_2.13:$connector:alone \
    org.apache.spark:spark-token-provider-kafka-0-10_2.13:$tokens:alone \
    org.apache.kafka:kafka-clients:3.9.2:alone org.apache.commons:commons-pool2:2.13.1:alone
echo "Kafka is downloaded in $SECONDS s."
