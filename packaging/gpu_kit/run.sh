#!/bin/sh
# run.sh quick|bench|full [--devices LIST] [--out DIR]: see README.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
python=${LANCET_PYTHON:-python3}
command -v "$python" >/dev/null 2>&1 || { echo "run.sh: no Python '$python': LANCET_PYTHON=/path/to/python names one" >&2; exit 2; }
exec "$python" -B "$here/kit/main.py" "$@"
