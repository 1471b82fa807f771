#!/usr/bin/env bash
# Installs the Chromium that tests of the page need; without it they are skipped.
set -eu
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Chromium for the tests of the page ..."
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null
else
    echo "Chromium is missing, so the tests of the page are skipped. Install it with: sudo apt-get install chromium chromium-driver" >&2
fi
