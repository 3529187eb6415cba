#!/bin/sh
# run.sh PROGRAM ARGUMENTS...: a program of this folder, with torch's libraries from a Python that has torch 2.11.0.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
python=${LANCET_PYTHON:-python3}
expected=2.11.0

fail() {
  echo "${0##*/}: $1" >&2
  echo "  Install it (python3 -m venv venv && venv/bin/pip install torch==$expected), and name that Python: LANCET_PYTHON=venv/bin/python $0 ..." >&2
  exit 2
}

program=${1:-}
programs=$(ls "$here/bin" | tr '\n' '|')
case "|$programs" in
  *"|${program:-/}|"*) shift ;;
  *) echo "usage: $0 ${programs%|} ARGUMENTS..." >&2; exit 2 ;;
esac

command -v "$python" >/dev/null 2>&1 || fail "no Python '$python': expected one that has torch $expected"
# The version from its file: importing torch takes seconds.
found=$("$python" - 2>/dev/null <<'END'
import importlib.util, os, re
spec = importlib.util.find_spec("torch")
if spec and spec.origin:
    folder = os.path.dirname(spec.origin)
    version = re.search(r"""__version__\s*(?::\s*str\s*)?=\s*['"]([0-9.]+)""", open(os.path.join(folder, "version.py")).read())
    print(version[1] if version else "unknown", folder)
END
) || fail "'$python' does not run"
[ -n "$found" ] || fail "'$python' has no torch: expected torch $expected"
version=${found%% *}
torch=${found#* }
[ "$version" = "$expected" ] || fail "'$python' has torch $version in $torch: expected $expected"
[ -e "$torch/lib/libtorch_cuda.so" ] || fail "$torch is torch for CPUs only: expected the wheel of PyPI, which runs without a GPU too"

# lib/ holds no library that the wheels hold: the order decides nothing.
libraries=$torch/lib
for folder in "$(dirname "$torch")"/nvidia/*/lib; do
  [ -d "$folder" ] && libraries=$libraries:$folder
done
LD_LIBRARY_PATH=$libraries:$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$here/bin/$program" "$@"
