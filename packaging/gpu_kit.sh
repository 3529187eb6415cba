#!/bin/sh
# gpu_kit.sh BUILD [FOLDER [PROGRAM...]]: what shows on a machine with GPUs whether lancet is right and fast there: FOLDER
# (BUILD/gpu-kit) and FOLDER.tar.gz. PROGRAMs are files of BUILD (lancet lancet_bench tests/gpu_tests). An archive over 36 MiB
# is refused. It is of gzip, which every Python and tar opens; xz is not everywhere.
set -eu

build=$1
kit=${2:-$build/gpu-kit}
if [ "$#" -gt 2 ]; then shift 2; else set -- lancet lancet_bench tests/gpu_tests; fi
source=$(cd "$(dirname "$0")/.." && pwd)
most_kib=36864
. "$source/packaging/programs.sh"

for program in "$@"; do
  shift
  set -- "$@" "$build/$program"
done
copy_programs "$kit" "$@"
mkdir -p "$kit/data/jobs"
cp -r "$source/data/demo-model" "$source/data/requests" "$kit/data/"
cp "$source/data/jobs/demo.yaml" "$kit/data/jobs/"
mkdir "$kit/kit"
cp "$source"/packaging/gpu_kit/*.py "$kit/kit/"
cp "$source/packaging/gpu_kit/run.sh" "$source/LICENSE" "$kit/"
cp "$source/packaging/bundle_run.sh" "$kit/program.sh"
chmod +x "$kit/run.sh" "$kit/program.sh"

glibc=$(newest_version "$kit" GLIBC)
glibcxx=$(newest_version "$kit" GLIBCXX)
cat >"$kit/README" <<END
Whether lancet is right and fast on this machine's GPUs. Needs x86-64 Linux with $glibc and $glibcxx or newer, and
torch 2.11.0 in a Python (3.10 or newer); no network, no packages.
  ./run.sh quick     is it right?  doctor, tests, the demo on GPU, CPU and both
  ./run.sh bench     is it fast?   every stage at the shape of Llama-3-8B
  ./run.sh full      a whole edit of a checkpoint of that shape; needs about 45 GB of disk under TMPDIR
Each ends within 9 minutes and leaves results.json, table.txt and logs.tar.gz in gpu-kit-results (--out DIR), also when it is
interrupted. --devices cuda:0,cuda:1 names devices, --devices cpu needs none. LANCET_PYTHON=/path/to/python names the
Python; else python3 of the path.
  ./program.sh lancet|lancet_bench|gpu_tests ARGUMENTS...    runs a program by itself
END

pack "$kit"
kib=$(($(wc -c <"$kit.tar.gz") / 1024))
echo "$kit.tar.gz: $kib KiB; needs $glibc, $glibcxx"
[ "$kib" -le "$most_kib" ] || { rm "$kit.tar.gz"; echo "gpu_kit.sh: $kit.tar.gz: expected at most $most_kib KiB, got $kib" >&2; exit 1; }
