#!/usr/bin/env bash
# The page is tested in a real Chromium. Where it cannot be installed, those tests are skipped and say so.
set -eu
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Chromium for the tests of the page ..."
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null
else
    echo "There is no Chromium here, so the page is not tested. Install it with: sudo apt-get install chromium chromium-driver" >&2
fi
