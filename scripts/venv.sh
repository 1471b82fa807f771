#!/usr/bin/env bash
# Creates the virtual environment: scripts/venv.sh PYTHON FOLDER EXTRAS
set -euo pipefail
python=$1
venv=$2
extras=$3

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "spark-elastic needs Python 3.11 or newer as '$python'. Install one, or name it: make PYTHON=python3.12 ..." >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian packages venv separately.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq python3-venv
    else
        echo "Python's venv module is missing. Install it with: sudo apt-get install python3-venv" >&2
        exit 1
    fi
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
echo "installing the Python dependencies into $venv ..."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$extras]"
echo "compiling the kernels ..."
"$venv/bin/python" -m migration
"$venv/bin/python" -m mdp
"$venv/bin/python" -m elastic.operators
