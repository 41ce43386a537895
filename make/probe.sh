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

onednn=${ONEDNN:-auto}
cxx=${CXX:-g++}
deps=$PWD/.deps
cppflags=
ldflags=
if [ -d "$deps/usr" ]; then
  triplet=$(ls -d "$deps"/usr/lib/*-linux-gnu* 2>/dev/null | head -n1)
  triplet=${triplet##*/}
  # The C library's headers have to come after those of C++, which lead to them by include_next.
  include=-isystem
  [ -e "$deps/usr/include/stdlib.h" ] && include=-idirafter
  for folder in usr/include ${triplet:+usr/include/$triplet}; do
    [ -d "$deps/$folder" ] && cppflags+=" $include $deps/$folder"
  done
  # RPATH rather than RUNPATH: it also leads libraries to the libraries that they need.
  ldflags=" -Wl,--disable-new-dtags"
  for folder in ${triplet:+usr/lib/$triplet} usr/lib64 usr/lib; do
    [ -d "$deps/$folder" ] && ldflags+=" -L$deps/$folder -Wl,-rpath,$deps/$folder"
  done
fi
if [ "$cxx" = g++ ] && [ -x "$deps/bin/g++" ]; then cxx=$deps/bin/g++; fi

# ---- Questions to the compiler.
works=  # Does it?

compile() { $cxx -std=c++17 $cppflags -x c++ "$@"; }

# has HEADER [LIBRARY-FLAG...]: can it be included, and an empty program be linked with them?
has() {
  local header=$1
  shift
  if [ ! "$works" ]; then  # Nobody to ask: is it where a compiler would look?
    set -- {,/usr/local,"$deps"}/usr/include/{,*/}"$header" "/usr/local/include/$header"
    ls -d "$@" 2>/dev/null | grep -q .
    return
  fi
  printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$header" | compile -E - >/dev/null 2>&1 || return
  [ $# = 0 ] || echo 'int main() {}' | compile - -x none $ldflags "$@" -o "$work/a.out" 2>/dev/null
}

# version HEADER MACRO...: their values, joined by full stops; nothing where one is not defined.
version() {
  local header=$1 name value values=
  [ "$works" ] || return
  shift
  for name; do
    value=$(printf '#include <%s>\nduplex_probe %s\n' "$header" "$name" | compile -E -P - 2>/dev/null |
      sed -n 's/^duplex_probe *//p' | tr -d '" ' | tail -n1)
    [ "$value" = "$name" ] && return
    values+=${values:+.}$value
  done
  echo "$values"
}

# ---- The answers: "what|version"; "what|what it costs to go without|Debian package|Fedora package";
# "what|Debian package|Fedora package".
found=() without=() missing=()

if ! command -v "${cxx%% *}" >/dev/null 2>&1; then
  missing+=("a C++17 compiler ($cxx)|g++|gcc-c++")
elif ! printf '#include <cstdlib>\nstatic_assert(__cplusplus >= 201703L, "");\nint main() {}\n' |
  compile - -o "$work/a.out" >"$work/errors" 2>&1; then
  missing+=("a C++17 compiler that works ($cxx: $(grep -m1 error "$work/errors"))|g++|gcc-c++")
else
  works=1
  found+=("compiler|$($cxx --version | head -n1)")
fi

openmp=
if [ "$works" ] && printf '#include <omp.h>\nint main() { return omp_get_max_threads() == 0; }\n' |
  compile -fopenmp - $ldflags -o "$work/a.out" 2>/dev/null; then
  openmp=-fopenmp
  found+=("OpenMP|")
elif [ "$works" ]; then
  without+=("OpenMP|the reference operations run on one thread|libomp-dev|libomp-devel")
fi

if has stb/stb_image.h; then found+=("stb|"); else missing+=("stb|libstb-dev|stb_image-devel"); fi
if has CLI/CLI.hpp; then
  found+=("CLI11|$(version CLI/Version.hpp CLI11_VERSION)")
else
  missing+=("CLI11|libcli11-dev|cli11-devel")
fi
if has nlohmann/json.hpp; then
  found+=("json|$(version nlohmann/json.hpp NLOHMANN_JSON_VERSION_{MAJOR,MINOR,PATCH})")
else
  missing+=("json|nlohmann-json3-dev|json-devel")
fi
if has openssl/hmac.h -lcrypto; then
  found+=("OpenSSL|$(version openssl/opensslv.h OPENSSL_VERSION_STR)")
else
  missing+=("OpenSSL's libcrypto|libssl-dev|openssl-devel")
fi

gtest=
if has gtest/gtest.h -lgtest_main -lgtest -pthread; then
  gtest=1
  found+=("GoogleTest|")
else
  without+=("GoogleTest|no tests|libgtest-dev|gtest-devel")
fi

has_onednn=
if [ "$onednn" = 0 ]; then
  without+=("oneDNN|turned off by ONEDNN=0: training runs on the slow reference loops||")
elif has dnnl.hpp -ldnnl; then
  has_onednn=1
  found+=("oneDNN|$(version oneapi/dnnl/dnnl_version.h DNNL_VERSION_{MAJOR,MINOR,PATCH})")
elif [ "$onednn" = 1 ]; then
  missing+=("oneDNN, which ONEDNN=1 asks for|libdnnl-dev|onednn-devel")
else
  without+=("oneDNN|training runs on the slow reference loops|libdnnl-dev|onednn-devel")
fi

# ---- Written down.
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

# package DEBIAN FEDORA: the name that this machine's package manager knows.
package() { if ! command -v apt-get >/dev/null && [ -e /etc/redhat-release ]; then echo "$2"; else echo "$1"; fi; }

{
  for entry in ${found[@]+"${found[@]}"}; do
    printf '  found    %-11s %s\n' "${entry%%|*}" "${entry#*|}" | sed 's/ *$//'
  done
  more=
  for entry in ${without[@]+"${without[@]}"}; do
    IFS='|' read -r what cost debian fedora <<<"$entry"
    name=$(package "$debian" "$fedora")
    more+=$name
    printf '  without  %-11s %s%s\n' "$what" "$cost" "${name:+ (package $name)}"
  done
  if [ -d "$deps/usr" ]; then echo "  .deps/ was looked into first"; fi
  if [ ${#missing[@]} -gt 0 ]; then
    echo
    echo "Cannot build. This machine lacks"
    for entry in "${missing[@]}"; do
      IFS='|' read -r what debian fedora <<<"$entry"
      printf '  %s: package %s\n' "$what" "$(package "$debian" "$fedora")"
    done
    echo "\`make deps' installs what is missing (without root it unpacks the packages into .deps/)."
  elif [ "$more" ]; then
    echo "  \`make deps' installs what of it can be had"
  fi
} >"$out/config.txt"
mv "$out/config.mk.new" "$out/config.mk"
