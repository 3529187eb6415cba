#!/bin/sh
# bundle.sh BUILD: the programs, the shared libraries that a machine may lack, and the demo, in one folder that can be put anywhere:
# BUILD/bundle and BUILD/bundle.tar.gz. torch is not in it; run.sh finds it there. Fails when the folder is over 40 MiB.
set -eu

build=$1
source=$(cd "$(dirname "$0")/.." && pwd)
bundle=$build/bundle
most_kib=40960

rm -rf "$bundle" "$bundle.tar.gz"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/data"
for program in lancet lancet_bench; do
  cp "$build/$program" "$bundle/bin/"
  strip --strip-unneeded "$bundle/bin/$program"
done

# torch, CUDA, the C and the C++ library belong to the machine; everything else comes along. libstdc++ is there wherever torch
# is, and ours may ask for a newer C library than the programs do.
is_from_elsewhere() {
  case "$1" in
    libtorch*|libc10*|libcu*|libnv*|libnccl*|libgomp*|libshm*) return 0 ;;
    linux-vdso*|ld-linux*|libc.so*|libm.so*|libdl.so*|librt.so*|libpthread.so*|libutil.so*|libstdc++.so*|libgcc_s.so*) return 0 ;;
  esac
  return 1
}

needed() { objdump -p "$@" | sed -n 's/^ *NEEDED *//p' | sort -u; }

# Libraries need libraries: until nothing new comes.
added=1
while [ "$added" = 1 ]; do
  added=0
  for name in $(needed "$bundle"/bin/* $(find "$bundle/lib" -name '*.so*')); do
    if is_from_elsewhere "$name" || [ -e "$bundle/lib/$name" ]; then continue; fi
    file=$(ldd "$build/lancet_bench" | awk -v name="$name" '$1 == name { print $3 }')
    [ -n "$file" ] || { echo "bundle.sh: $name: not found by ldd $build/lancet_bench" >&2; exit 1; }
    cp -L "$file" "$bundle/lib/$name"
    strip --strip-unneeded "$bundle/lib/$name"
    added=1
  done
done

cp -r "$source/data/." "$bundle/data/"
cp "$source/packaging/bundle_run.sh" "$bundle/run.sh"
cp "$source/LICENSE" "$bundle/"
chmod +x "$bundle/run.sh"

# What the machine has to have, from the symbols' versions.
versions() { objdump -T "$bundle"/bin/* "$bundle"/lib/* | grep -o "$1_[0-9.]*[0-9]" | sort -Vu | tail -1; }
cat >"$bundle/README" <<END
lancet without its build: needs x86-64 Linux with $(versions GLIBC) and $(versions GLIBCXX) or newer, and torch 2.11.0 in a Python (3.10 or newer).
  ./run.sh lancet edit data/jobs/demo.yaml      writes out/demo
  ./run.sh lancet_bench --shape llama-3-8b --dtype bf16 --device cuda:0
LANCET_PYTHON=/path/to/python names the Python; else python3 of the path. lib/ holds $(ls "$bundle/lib" | tr '\n' ' ')
END

# Names, owners and times that do not vary: the same build gives the same archive.
tar -C "$build" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -czf "$bundle.tar.gz" bundle
kib=$(du -sk "$bundle" | cut -f1)
echo "$bundle: $kib KiB, $(($(wc -c <"$bundle.tar.gz") / 1024)) KiB as .tar.gz; needs $(versions GLIBC), $(versions GLIBCXX)"
[ "$kib" -lt "$most_kib" ] || { echo "bundle.sh: $bundle: expected less than $most_kib KiB, got $kib" >&2; exit 1; }
