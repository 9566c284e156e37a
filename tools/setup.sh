# Sourced by ./run and ./test: makes sure that what the build needs is there, then configures it.
# Installs Debian packages where it may (root, or sudo without a password); else says in one line what is missing.
# Sets TW_ROOT and TW_NVCC_ARGS.

TW_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# file that proves it, and the Debian package that has it
TW_NEEDS="
/usr/bin/g++:g++
/usr/bin/cmake:cmake
/usr/bin/ninja:ninja-build
/usr/bin/python3:python3
/usr/bin/python3-config:python3-dev
/usr/share/doc/python3-venv:python3-venv
/usr/include/fmt/format.h:libfmt-dev
/usr/include/nlohmann/json.hpp:nlohmann-json3-dev
/usr/include/CLI/CLI.hpp:libcli11-dev
/usr/include/zlib.h:zlib1g-dev
/usr/include/gtest/gtest.h:libgtest-dev
/usr/include/gmock/gmock.h:libgmock-dev
"

tw_fail() {
  echo "tilewright: $*" >&2
  exit 1
}

tw_install_packages() {
  local need missing=""
  for need in $TW_NEEDS; do
    [ -e "${need%%:*}" ] || missing="$missing ${need##*:}"
  done
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null || tw_fail "missing:$missing; install them (names of the Debian packages)"
  local as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || tw_fail "missing Debian packages:$missing; run: sudo apt-get install$missing"
    as_root="sudo -n"
  fi
  echo "tilewright: installing Debian packages:$missing"
  { $as_root apt-get update -qq || true; } >/dev/null 2>&1
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 ||
    tw_fail "could not install:$missing; run: sudo apt-get install$missing"
}

# libFuzzer comes with clang only. Where it cannot be had, one line says so; the mutation tests run all the same.
tw_has_clang() {
  [ "${TILEWRIGHT_FUZZ:-ON}" != OFF ] || { echo "tilewright: TILEWRIGHT_FUZZ=OFF, libFuzzer targets are left out"; return 1; }
  local probe="$TW_ROOT/build/libfuzzer_probe"
  tw_clang_works "$probe" && return 0
  (TW_NEEDS="/usr/bin/clang++:clang /usr/share/doc/libclang-rt-dev:libclang-rt-dev" tw_install_packages) 2>/dev/null
  tw_clang_works "$probe" && return 0
  echo "tilewright: no clang with libFuzzer, so its targets are left out; to have them: sudo apt-get install clang libclang-rt-dev"
  return 1
}

tw_clang_works() {
  command -v clang++ >/dev/null || return 1
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer,address -x c++ - -o "$1" 2>/dev/null
}

# The CUDA compiler: one that is installed, else NVIDIA's wheels in build/cuda. Prints the path of nvcc.
tw_find_nvcc() {
  local candidate version
  for candidate in "${TILEWRIGHT_NVCC:-}" "$(command -v nvcc)" "${CUDA_HOME:-/nonexistent}/bin/nvcc" \
    /usr/local/cuda/bin/nvcc "$TW_ROOT/build/cuda/nvidia/cu13/bin/nvcc"; do
    [ -x "$candidate" ] || continue
    version=$("$candidate" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    [ "${version:-0}" -ge 13 ] && echo "$candidate" && return 0
  done
  return 1
}

tw_fetch_nvcc() {
  local advice="install the CUDA toolkit 13.0 or newer, or build without kernels: TILEWRIGHT_KERNELS=OFF"
  local log="$TW_ROOT/build/cuda.log"
  echo "tilewright: fetching the CUDA compiler (about 100 MB, once)"
  # Debian's Python comes without pip; the package's environment has one.
  local python=python3
  python3 -m pip --version >/dev/null 2>&1 || { tw_python_environment && python="$TW_ROOT/build/python/bin/python"; }
  if ! "$python" -m pip --version >/dev/null 2>&1; then
    TW_NEEDS="/usr/bin/pip3:python3-pip" tw_install_packages
    python=python3
  fi
  rm -rf "$TW_ROOT/build/cuda.partial"
  "$python" -m pip install -q --disable-pip-version-check --no-deps --no-compile --only-binary=:all: \
    --require-hashes -r "$TW_ROOT/tools/cuda-requirements.txt" --target "$TW_ROOT/build/cuda.partial" >"$log" 2>&1 || {
    grep -i error "$log" | tail -n 2 >&2
    tw_fail "no nvcc 13.0 or newer here, and NVIDIA's wheels cannot be fetched (pip's words: $log); $advice"
  }
  rm -rf "$TW_ROOT/build/cuda"
  mv "$TW_ROOT/build/cuda.partial" "$TW_ROOT/build/cuda"
}

# tw_python_environment [--tests]: build/python, where the package of build/release can be imported.
tw_python_environment() {
  python3 "$TW_ROOT/tools/python_environment.py" "$@" || true
}

# A checkout that cannot be written to is used as it was built. Leaves by exec or with a message.
tw_use_read_only() {
  local tool="$TW_ROOT/build/release/bin/tilewright"
  [ "$(basename "$0")" = run ] && [ -x "$tool" ] ||
    tw_fail "$TW_ROOT is not writable, so nothing can be built in it; copy it to a place that is, or change its owner"
  [ $# -gt 0 ] || tw_fail "$TW_ROOT is not writable, so ./run alone has no place for its report;" \
    "what is built runs with arguments: ./run demo --out FOLDER, ./run --help"
  exec "$tool" "$@"
}

# CMake's files name the folder they were made for: in a checkout that was moved they are made anew.
tw_forget_old_place() {
  local cache="$TW_ROOT/build/$1/CMakeCache.txt" home
  [ -f "$cache" ] || return 0
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
  [ "$home" != "$TW_ROOT" ] || return 0
  echo "tilewright: this checkout was built at ${home:-another place}; build/$1 is built anew" >&2
  rm -rf "$TW_ROOT/build/$1"
}

tw_setup() {
  if ! mkdir -p "$TW_ROOT/build" 2>/dev/null || ! [ -w "$TW_ROOT/build" ]; then
    tw_use_read_only "$@"
  fi
  tw_install_packages
  TW_NVCC_ARGS="-DTILEWRIGHT_KERNELS=OFF"
  if [ "${TILEWRIGHT_KERNELS:-ON}" != OFF ]; then
    local nvcc
    nvcc=$(tw_find_nvcc) || { tw_fetch_nvcc && nvcc=$(tw_find_nvcc); } ||
      tw_fail "the fetched CUDA compiler does not run; install the CUDA toolkit 13.0 or newer"
    TW_NVCC_ARGS="-DTILEWRIGHT_KERNELS=ON -DTILEWRIGHT_NVCC=$nvcc"
  fi
}

# tw_build_fuzzers [TARGET...]: in build/fuzz, with clang.
tw_build_fuzzers() {
  local log="$TW_ROOT/build/fuzz.log"
  tw_forget_old_place fuzz
  (cmake -G Ninja -S "$TW_ROOT" -B "$TW_ROOT/build/fuzz" -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
    -DCMAKE_BUILD_TYPE=Release -DTILEWRIGHT_FUZZERS=ON -DTILEWRIGHT_KERNELS=OFF >"$log" 2>&1 &&
    ninja -C "$TW_ROOT/build/fuzz" "$@" 2>&1 | python3 "$TW_ROOT/tools/build_progress.py" fuzz "$log") ||
    { grep -E "error|FAILED|warning" "$log" | head -n 20 >&2; tw_fail "building the fuzzers failed; see $log"; }
}

# tw_build PRESET [TARGET...]: configures if needed and builds. Ninja's own lines on a terminal; else a line a minute.
tw_build() {
  local preset=$1 log="$TW_ROOT/build/$1.log"
  local advice="if a file in build/ was cut or lost, remove the folder build/$1 and run this again"
  shift
  tw_forget_old_place "$preset"
  (cd "$TW_ROOT" && cmake --preset "$preset" $TW_NVCC_ARGS >"$log" 2>&1) ||
    { tail -n 20 "$log" >&2; tw_fail "configuring $preset failed; see $log"; }
  if [ -t 1 ]; then
    ninja -C "$TW_ROOT/build/$preset" "$@" || tw_fail "building $preset failed; $advice"
  else
    ninja -C "$TW_ROOT/build/$preset" "$@" 2>&1 | python3 "$TW_ROOT/tools/build_progress.py" "$preset" "$log" ||
      { grep -E "error|FAILED|warning" "$log" | head -n 20 >&2; tw_fail "building $preset failed; see $log; $advice"; }
  fi
}
