#!/usr/bin/env bash
# Installs Debian packages: scripts/apt.sh PACKAGE...; exits with 1 where that is not possible.
# Targets that run side by side wait for each other, since apt-get does not wait for itself.
set -eu
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 1
if command -v flock >/dev/null; then
    exec 9>"${TMPDIR:-/tmp}/spark-elastic-apt.lock"
    flock 9
fi
apt-get update -qq 9>&-
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null 9>&-
