#!/usr/bin/env bash
# Installs the Chromium that tests of the page need; without it they are skipped.
set -eu
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    exit 0
fi
echo "installing Chromium for the tests of the page ..."
if ! bash "$(dirname "$0")/apt.sh" chromium chromium-driver; then
    echo "Chromium is missing, so the tests of the page are skipped. Install it with: sudo apt-get install chromium chromium-driver" >&2
fi
