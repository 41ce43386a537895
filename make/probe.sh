#!/bin/bash
# What this machine has: writes make variables to OUT/config.mk and the same for people to
# OUT/config.txt. Settings come from the environment: CXX, ONEDNN (auto, 0, 1).
# Usage: make/probe.sh OUT
set -u
cd "$(dirname "$0")/.." || exit 1
out=$1
mkdir -p "$out"
work=$(mktemp -d "$out/probe.XXXXXX")
trap 'rm -rf "$work"' EXIT

deps=$PWD/.deps
onednn=${ONEDNN:-auto}
cxx=${CXX:-g++}
cppflags=
ldflags=
if [ -d "$deps/usr" ]; then
  triplet=$(ls -d "$deps"/usr/lib/*-linux-gnu* 2>/dev/null | head -n1)
  triplet=${triplet##*/}
  for folder in usr/include ${triplet:+usr/include/$triplet}; do
    [ -d "$deps/$folder" ] && cppflags+=" -isystem $deps/$folder"
  done
  for folder in ${triplet:+usr/lib/$triplet} usr/lib64 usr/lib; do
    [ -d "$deps/$folder" ] && ldflags+=" -L$deps/$folder -Wl,-rpath,$deps/$folder"
  done
fi
if [ "$cxx" = g++ ] && [ -x "$deps/bin/g++" ]; then cxx=$deps/bin/g++; fi

compile() { $cxx -std=c++17 $cppflags -x c++ "$@"; }
has_header() { printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | compile -E - >/dev/null 2>&1; }
# links LIBRARY-FLAGS: can an empty program be linked with them?
links() { echo 'int main() {}' | compile - -x none $ldflags "$@" -o "$work/a.out" 2>/dev/null; }
# macro HEADER NAME: what the preprocessor makes of NAME.
macro() { printf '#include <%s>\nduplex_probe %s\n' "$1" "$2" | compile -E -P - 2>/dev/null |
  sed -n 's/^duplex_probe *//p' | tr -d '" ' | tail -n1; }

missing=() found=() without=()
if ! command -v $cxx >/dev/null 2>&1; then
  missing+=("a C++17 compiler ($cxx)|g++|gcc-c++")
elif ! echo 'static_assert(__cplusplus >= 201703L, ""); int main() {}' | compile - -o "$work/a.out" 2>"$work/errors"; then
  missing+=("a C++17 compiler that works ($cxx: $(grep -m1 . "$work/errors"))|g++|gcc-c++")
else
  found+=("compiler|$($cxx --version | head -n1)")
  has_compiler=1
fi

openmp=
if [ "${has_compiler:-}" ]; then
  if links -fopenmp; then
    openmp=-fopenmp
    found+=("OpenMP|version $(echo _OPENMP | compile -fopenmp -E -P - | tail -n1)")
  else
    without+=("OpenMP: operations run on one thread|the OpenMP library of this compiler (libomp-dev for clang)")
  fi
fi
need_header() {  # NAME HEADER VERSION DEBIAN FEDORA
  if [ "${has_compiler:-}" ] && has_header "$2"; then found+=("$1|$3"); else missing+=("$1|$4|$5"); fi
}
need_header stb stb/stb_image.h "stb_image.h" libstb-dev stb-devel
need_header CLI11 CLI/CLI.hpp "$(macro CLI/Version.hpp CLI11_VERSION)" libcli11-dev cli11-devel
need_header json nlohmann/json.hpp "$(macro nlohmann/json.hpp \
  'NLOHMANN_JSON_VERSION_MAJOR.NLOHMANN_JSON_VERSION_MINOR.NLOHMANN_JSON_VERSION_PATCH')" nlohmann-json3-dev json-devel
if [ "${has_compiler:-}" ] && has_header openssl/hmac.h && links -lcrypto; then
  found+=("OpenSSL|$(macro openssl/opensslv.h OPENSSL_VERSION_TEXT | sed 's/^OpenSSL//')")
else
  missing+=("OpenSSL's libcrypto|libssl-dev|openssl-devel")
fi

gtest=
if [ "${has_compiler:-}" ] && has_header gtest/gtest.h && links -lgtest_main -lgtest -pthread; then
  gtest=1
  found+=("GoogleTest|found")
else
  without+=("GoogleTest: no \`make test'|libgtest-dev (Debian), gtest-devel (Fedora, EPEL)")
fi

has_onednn=
if [ "$onednn" != 0 ]; then
  if [ "${has_compiler:-}" ] && has_header oneapi/dnnl/dnnl.hpp && links -ldnnl; then
    has_onednn=1
    found+=("oneDNN|$(macro oneapi/dnnl/dnnl_version.h \
      'DNNL_VERSION_MAJOR.DNNL_VERSION_MINOR.DNNL_VERSION_PATCH')")
  elif [ "$onednn" = 1 ]; then
    missing+=("oneDNN (asked for by ONEDNN=1)|libdnnl-dev|onednn-devel")
  else
    without+=("oneDNN: training runs on the slow reference loops|libdnnl-dev (Debian), onednn-devel (Fedora, EPEL)")
  fi
else
  without+=("oneDNN: turned off by ONEDNN=0|")
fi

{
  echo "# Written by make/probe.sh."
  echo "CONFIG_CXX := $cxx"
  echo "CONFIG_CPPFLAGS :=$cppflags"
  echo "CONFIG_LDFLAGS :=$ldflags"
  echo "CONFIG_OPENMP := $openmp"
  echo "CONFIG_ONEDNN := $has_onednn"
  echo "CONFIG_GTEST := $gtest"
  echo "CONFIG_MISSING := ${#missing[@]}"
} >"$out/config.mk.new"

{
  for entry in "${found[@]}"; do printf '  found    %-11s %s\n' "${entry%%|*}" "${entry#*|}"; done
  for entry in "${without[@]}"; do
    printf '  without  %s%s\n' "${entry%%|*}" "${entry#*|}" | sed "s/\(.*\)|/\1/"
  done
  if [ -d "$deps/usr" ]; then echo "  looked into .deps/ first"; fi
  if [ ${#missing[@]} -gt 0 ]; then
    echo
    echo "Cannot build: this machine lacks"
    for entry in "${missing[@]}"; do
      IFS='|' read -r what debian fedora <<<"$entry"
      printf '  %-28s package %s (Debian, Ubuntu), %s (CentOS, Fedora)\n' "$what" "$debian" "$fedora"
    done
    echo "\`make deps' installs them; without root it unpacks them into .deps/."
  fi
} >"$out/config.txt"
mv "$out/config.mk.new" "$out/config.mk"
