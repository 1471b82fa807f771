#!/usr/bin/env bash
# Builds MinIO from source into the cache, once: its release binaries are no longer published.
# scripts/minio.sh         build it if it is missing
# scripts/minio.sh --path  only print where the binary is, or would be
set -euo pipefail

# The full pseudo-version of the commit of 2026-02-12: module proxies refuse MinIO's release tags and short hashes.
version=v0.0.0-20260212201848-7aac2a2c5b7c
folder=${ELASTIC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spark-elastic}/minio-$version
binary=$folder/minio

if [ "${1:-}" = --path ]; then
    echo "$binary"
    exit
fi
[ -x "$binary" ] && exit

# MinIO's go.mod requires Go 1.24; GOTOOLCHAIN=local keeps Go from downloading another toolchain.
export GOTOOLCHAIN=local
found=$( (go env GOVERSION 2>/dev/null || true) | sed -nE 's/^go([0-9]+)\.([0-9]+).*/\1 \2/p')
found=${found:-none}
read -r major minor <<<"${found/none/0 0}"
if [ "$((major * 1000 + minor))" -lt 1024 ]; then
    echo "MinIO is not built: it needs Go 1.24 or newer (found: ${found/ /.}). The S3 tests use moto instead."
    exit
fi

mkdir -p "$folder"
if command -v flock >/dev/null; then
    exec 9>"$folder/lock"
    flock 9
    [ -x "$binary" ] && exit # another build finished while this one waited
fi
rm -rf "$folder"/build.* # left by killed builds

work=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "building MinIO from source into the cache: some minutes, once (needs 2 GB of temporary space) ..."
# Modules and build cache are deleted after the build; -modcacherw lets rm remove them.
if ! GOBIN=$work/bin GOMODCACHE=$work/modules GOCACHE=$work/objects GOTMPDIR=$work CGO_ENABLED=0 \
    GOFLAGS="-buildvcs=false -modcacherw" \
    nice -n 15 go install -trimpath -ldflags="-s -w" "github.com/minio/minio@$version" 9>&- >"$work/log" 2>&1; then
    tail -n 5 "$work/log" >&2
    echo "MinIO was not built, see above. Check the network and 'go env GOPROXY'; until then the S3 tests use moto." >&2
    exit
fi
mv "$work/bin/minio" "$binary" # atomic: no process sees a partial binary
echo "MinIO is built in $((SECONDS / 60)) min $((SECONDS % 60)) s."
