# Sourced by bundle.sh and gpu_kit.sh: programs in a folder that can be put anywhere, with the libraries that a machine may lack.

# copy_programs FOLDER FILE...: into FOLDER/bin, without symbols, and what they need into FOLDER/lib.
copy_programs() {
  folder=$1
  shift
  rm -rf "$folder" "$folder.tar.gz"
  mkdir -p "$folder/bin" "$folder/lib"
  for file in "$@"; do
    [ -e "$file" ] || { echo "$0: $file is not built: make ${folder##*/}" >&2; exit 1; }
    cp "$file" "$folder/bin/"
    strip --strip-unneeded "$folder/bin/${file##*/}"
  done
  copy_libraries "$folder" "$@"
}

# torch, CUDA, the C and the C++ library belong to the machine; everything else comes along. libstdc++ is there wherever torch
# is, and ours may ask for a newer C library than the programs do.
is_from_elsewhere() {
  case "$1" in
    libtorch*|libc10*|libcu*|libnv*|libnccl*|libgomp*|libshm*) return 0 ;;
    linux-vdso*|ld-linux*|libc.so*|libm.so*|libmvec.so*|libdl.so*|librt.so*|libpthread.so*|libutil.so*|libstdc++.so*|libgcc_s.so*) return 0 ;;
  esac
  return 1
}

needed() { objdump -p "$@" | sed -n 's/^ *NEEDED *//p' | sort -u; }

# copy_libraries FOLDER FILE...: libraries need libraries: until nothing new comes. FILEs are the programs as built.
copy_libraries() {
  folder=$1
  shift
  added=1
  while [ "$added" = 1 ]; do
    added=0
    for name in $(needed "$folder"/bin/* $(find "$folder/lib" -name '*.so*')); do
      if is_from_elsewhere "$name" || [ -e "$folder/lib/$name" ]; then continue; fi
      file=$(for built in "$@"; do ldd "$built"; done | awk -v name="$name" '$1 == name { print $3; exit }')
      [ -n "$file" ] || { echo "$0: $name: not found by ldd $*" >&2; exit 1; }
      cp -L "$file" "$folder/lib/$name"
      strip --strip-unneeded "$folder/lib/$name"
      added=1
    done
  done
}

# newest_version FOLDER GLIBC: what the machine has to have, from the symbols' versions.
newest_version() { objdump -T "$1"/bin/* "$1"/lib/* | grep -o "$2_[0-9.]*[0-9]" | sort -Vu | tail -1; }

# pack FOLDER: FOLDER.tar.gz. Names, owners and times that do not vary: the same build gives the same archive.
pack() {
  tar -C "$(dirname "$1")" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -czf "$1.tar.gz" "${1##*/}"
}
