#!/bin/sh
# Installs what lancet is built and tested with. setup.sh packages | wheels FILE | beside FILE | browser | llama-server
set -eu

# Compiler and build tools, then the libraries that CMakeLists.txt looks for.
PACKAGES="g++ cmake ninja-build ccache pkg-config python3-venv
libsentencepiece-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libxxhash-dev libpcre2-dev libutf8proc-dev libcpp-httplib-dev zlib1g-dev libgtest-dev libbenchmark-dev"

missing_packages() {
  for package in $PACKAGES; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$package"
  done
}

install_packages() {
  if ! command -v apt-get >/dev/null; then
    echo "This is not Debian or Ubuntu. Install by hand what these Debian packages hold, then run make again:" >&2
    echo "  $PACKAGES" >&2
    echo "(a C++20 compiler, CMake >= 3.22, Ninja, and the libraries sentencepiece, yaml-cpp, nlohmann-json, CLI11, xxhash, PCRE2, utf8proc, cpp-httplib, zlib, GoogleTest, Google Benchmark)" >&2
    # Enough if the tools are there already: CMake checks the libraries.
    command -v cmake >/dev/null && command -v ninja >/dev/null && command -v pkg-config >/dev/null && return 0
    exit 1
  fi
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  apt_install "$missing"
}

apt_install() {
  missing=$1
  sudo=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "Run as root, or install sudo. Missing packages: $missing" >&2; exit 1; }
    sudo=sudo
  fi
  $sudo apt-get update
  # shellcheck disable=SC2086  # the list is words
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y --no-install-recommends $missing
}

# For the tests of pages (report.html, lancet serve), which skip where there is none. Ubuntu's chromium package is a snap, which has no place here.
install_browser() {
  for program in chromium-headless-shell chromium google-chrome; do
    command -v "$program" >/dev/null && return 0
  done
  command -v apt-get >/dev/null || return 0
  if apt-cache show chromium-headless-shell >/dev/null 2>&1; then
    apt_install chromium-headless-shell
  else
    echo "No package chromium-headless-shell here: the tests that open pages in a browser are skipped." >&2
  fi
}

install_wheels() {
  [ -x .venv/bin/python ] || python3 -m venv .venv
  .venv/bin/python -m pip install --disable-pip-version-check --quiet --no-compile -r "$1"  # a module is compiled where it is first imported
}

# Into .venv/beside, which is on nobody's path: other tests' packages would look for these and use them.
install_beside() {
  BUILD_CUDA_EXT=0 .venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --upgrade --target .venv/beside -r "$1"
}

# llama.cpp's server and the program that writes its model files, in .venv/llama.cpp, from the source that this package brings.
# A small model answers there for tests: to be compiled soon counts for more than to be fast.
LLAMA_SOURCE=llama-cpp-python==0.3.36
install_llama_server() {
  place=.venv/llama.cpp
  [ "$(cat $place/.built 2>/dev/null)" != "$LLAMA_SOURCE" ] || return 0
  rm -rf $place
  mkdir -p $place/source
  .venv/bin/python -m pip download --disable-pip-version-check --quiet --no-deps --no-binary llama-cpp-python --dest $place "$LLAMA_SOURCE"
  tar -xzf $place/llama_cpp_python-*.tar.gz -C $place/source --strip-components=3 --wildcards 'llama_cpp_python-*/vendor/llama.cpp/*'
  cmake -S $place/source -B $place/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DBUILD_SHARED_LIBS=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_OPENSSL=OFF
  cmake --build $place/build --target llama-server
  echo "$LLAMA_SOURCE" > $place/.built
}

case "${1:-}" in
  packages) install_packages ;;
  wheels) install_wheels "$2" ;;
  beside) install_beside "$2" ;;
  browser) install_browser ;;
  llama-server) install_llama_server ;;
  *) echo "usage: setup.sh packages | setup.sh wheels FILE | setup.sh beside FILE | setup.sh browser | setup.sh llama-server" >&2; exit 2 ;;
esac
