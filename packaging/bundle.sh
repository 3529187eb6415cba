#!/bin/sh
# bundle.sh BUILD: the programs, the shared libraries that a machine may lack, and the demo, in one folder that can be put anywhere:
# BUILD/bundle and BUILD/bundle.tar.gz. torch is not in it; run.sh finds it there. Fails when the folder is over 40 MiB.
set -eu

build=$1
source=$(cd "$(dirname "$0")/.." && pwd)
bundle=$build/bundle
most_kib=40960
. "$source/packaging/programs.sh"

copy_programs "$bundle" "$build/lancet" "$build/lancet_bench"
cp -r "$source/data" "$bundle/data"
cp "$source/packaging/bundle_run.sh" "$bundle/run.sh"
cp "$source/LICENSE" "$bundle/"
chmod +x "$bundle/run.sh"

glibc=$(newest_version "$bundle" GLIBC)
glibcxx=$(newest_version "$bundle" GLIBCXX)
cat >"$bundle/README" <<END
lancet without its build: needs x86-64 Linux with $glibc and $glibcxx or newer, and torch 2.11.0 in a Python (3.10 or newer).
  ./run.sh lancet edit data/jobs/demo.yaml      writes out/demo
  ./run.sh lancet_bench --shape llama-3-8b --dtype bf16 --device cuda:0
LANCET_PYTHON=/path/to/python names the Python; else python3 of the path. lib/ holds $(ls "$bundle/lib" | tr '\n' ' ')
END

pack "$bundle"
kib=$(du -sk "$bundle" | cut -f1)
echo "$bundle: $kib KiB, $(($(wc -c <"$bundle.tar.gz") / 1024)) KiB as .tar.gz; needs $glibc, $glibcxx"
[ "$kib" -lt "$most_kib" ] || { echo "bundle.sh: $bundle: expected less than $most_kib KiB, got $kib" >&2; exit 1; }
