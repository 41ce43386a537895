#!/bin/bash
# Tests what the Makefile builds and when, in a small tree of its own, whose libraries are stand-ins of a few lines.
# Usage: tests/makefile.sh
set -eu
cd "$(dirname "$0")/.."
cxx=${CXX:-g++}
# Like make/probe.sh, take the compiler that was unpacked without root, if there is one.
[ "$cxx" != g++ ] || [ ! -x .deps/bin/g++ ] || cxx=$PWD/.deps/bin/g++
command -v "${cxx%% *}" > /dev/null || { echo "skipped: needs $cxx"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree include=$work/include
fail() { echo "$*"; echo 'make said:'; cat "$work/said"; exit 1; }

# ---- Stand-ins for the libraries, for a compiler, and for what `make demo' and `make test' run.
mkdir -p "$include"/{CLI,gtest,nlohmann,openssl,stb} "$work"/{bin,lib}
touch "$include"/{CLI/CLI.hpp,CLI/Version.hpp,openssl/hmac.h,openssl/opensslv.h,openssl/evp.h,stb/stb_image.h,zlib.h}
echo '#define INSTANTIATE_TEST_SUITE_P' > "$include/gtest/gtest.h"
echo 'namespace nlohmann { struct ordered_json {}; }' > "$include/nlohmann/json.hpp"
for library in crypto z gtest gtest_main; do ar rc "$work/lib/lib$library.a"; done
export CPLUS_INCLUDE_PATH=$include LIBRARY_PATH=$work/lib
export DUPLEX_ROOT=$work/root
unset CPATH MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES BUILD ONLY SANITIZE WERROR CXXFLAGS LDFLAGS FULL
printf '#!/bin/bash\n[ "$*" != --version ] || { cat "%s/version"; exit; }\nexec %s "$@"\n' "$work" "$cxx" > "$work/bin/cxx"
chmod +x "$work/bin/cxx"
echo 'cxx 1.0' > "$work/version"
mkdir -p "$DUPLEX_ROOT/var/lib/dpkg"
status=$DUPLEX_ROOT/var/lib/dpkg/status
echo packages > "$status"
mkdir -p "$tree"/{core/{onednn,cudnn},layers,models,datasets,net/crypto,course,tools/{flags,text},tests/core}
cp -r Makefile make "$tree"
: > "$tree/make/standard.h"
touch "$tree"/{core/cudnn/layout,tools/flags/command_line}.cpp
cp core/onednn/compat.h "$tree/core/onednn"
cp tools/text/version.h "$tree/tools/text"
echo 'int a() { return 1; }' > "$tree/core/a.cpp"
printf '#include <openssl/evp.h>\nint b() { return 2; }\n' > "$tree/net/crypto/b.cpp"
echo 'int main() {}' | tee "$tree/tools/main.cpp" > "$tree/tests/core/a_test.cpp"
echo 'int c() { return 3; }' > "$tree/tests/core/c_test.cpp"
for script in make/deps.sh make/test.sh tools/demo.sh; do echo "echo '  run     ' $script" > "$tree/$script"; done

# build GOAL...: makes the goals, and leaves what make said, and what it compiled, linked and ran, a line each.
build() {
  local code=0
  make -C "$tree" -j3 CXX="$work/bin/cxx" ONEDNN=0 CUDA=0 "$@" > "$work/said" 2>&1 || code=$?
  sed -n 's/^  \(compile\|link\|run\)  */\1 /p' "$work/said" > "$work/done"
  [ $code = 0 ] || fail "make $* ended with $code"
}
# did LINE...: fails unless the last build did this and nothing else, in any order; '' is nothing.
did() { diff <(printf '%s\n' "$@" | sed '/^$/d' | sort) <(sort "$work/done") || fail "the left column was to be done, and the right one was"; }
all=(core/a.cpp core/cudnn/layout.cpp make/standard.h make/standard.h net/crypto/b.cpp tools/flags/command_line.cpp tools/main.cpp)
all=("${all[@]/#/compile }")
tests=('compile make/gtest.h' 'compile tests/core/a_test.cpp' 'compile tests/core/c_test.cpp')

# ---- Goals that remove or build in a make of their own are made in their order, and nothing twice.
build demo test ONLY=core
did "${all[@]}" "${tests[@]}" 'link bin/duplex' 'link build/tests/core' 'run make/deps.sh' 'run make/deps.sh' 'run tools/demo.sh' 'run make/test.sh'
! sed '/demo.sh/,$d' "$work/done" | grep 'tests/core' || fail 'the tests were built before the demo ran'
build clean all
did "${all[@]}" 'link bin/duplex'

# ---- A program is linked anew when one of its sources was removed, and nothing is made where nothing changed.
build build/tests/core
did "${tests[@]}" 'link build/tests/core'
build all build/tests/core
did ''
rm "$tree/tests/core/c_test.cpp"
build all build/tests/core
did 'link build/tests/core'
! nm "$tree/build/tests/core" | grep ' _Z1cv$' || fail 'the program still has what a source that was removed has brought'

# ---- An upgrade compiles all anew, though its files are older than what was built. The machine is looked at again when a package
# or a header changes, and only then.
# probed: succeeds if the last build looked at the machine.
probed() { [ "$tree/build/config.mk" -nt "$work/before" ]; }
# upgraded FILE TEXT: writes a file of a package.
upgraded() { echo "$2" > "$include/$1"; touch -d 2001-01-01 "$include/$1"; }
upgraded openssl/version.h '#define VERSION 1'
upgraded openssl/evp.h '#include <openssl/version.h>'
upgraded gtest/gtest.h '#define INSTANTIATE_TEST_SUITE_P 1'
build all build/tests/core
touch "$work/before"
build all build/tests/core
did ''
! probed || fail 'the machine was looked at again, and nothing had changed'
echo 'other packages' > "$status"
touch -d 2001-01-01 "$status"
build all build/tests/core
did ''
probed || fail 'packages changed, and the machine was not looked at'
tests=('compile make/gtest.h' 'compile tests/core/a_test.cpp' 'link build/tests/core')
upgraded openssl/version.h '#define VERSION 12'
build all build/tests/core
did "${all[@]}" "${tests[@]}" 'link bin/duplex'
upgraded gtest/gtest.h '#define INSTANTIATE_TEST_SUITE_P 12'
build all build/tests/core
did "${all[@]}" "${tests[@]}" 'link bin/duplex'
echo 'cxx 1.0, patched' > "$work/version"
echo '# patched' >> "$work/bin/cxx"
build all
did "${all[@]}" 'link bin/duplex'

# ---- The program knows which sources it is made of: outside of a checkout by their digest, in one by the commit, and by a
# digest of what has changed since.
# name TEXT: fails unless the program now has a name that begins so and that none had before.
names=
name() {
  local name
  build all
  name=$(sed -n 's/.*built_commit = "\(.*\)";/\1/p' "$tree/build/gen/version.cpp")
  [[ $name = "$1"* && $'\n'$names != *$'\n'$name$'\n'* ]] || fail "the program of other sources is called '$name'; before there were: $names"
  names+=$name$'\n'
}
export GIT_CEILING_DIRECTORIES=${work%/*}
name unknown-
echo 'int a() { return 4; }' > "$tree/core/a.cpp"
name unknown-
did 'compile core/a.cpp' 'link bin/duplex'
if command -v git > /dev/null; then
  git -C "$work" init -q
  git -C "$work" -c user.name=nobody -c user.email=nobody@invalid commit -q --allow-empty -m 'The checkout of something else.'
  echo 'int a() { return 3; }' > "$tree/core/a.cpp"
  name unknown-
  git=(git -C "$tree" -c user.name=nobody -c user.email=nobody@invalid)
  echo /build/ > "$tree/.gitignore"
  "${git[@]}" init -q
  "${git[@]}" add -A
  "${git[@]}" commit -q -m 'All of it.'
  commit=$("${git[@]}" rev-parse --short HEAD)
  name "$commit"
  for text in 'return 5' 'return 6'; do
    echo "int a() { $text; }" > "$tree/core/a.cpp"
    name "$commit-dirty-"
  done
  "${git[@]}" checkout -q core/a.cpp
  echo 'int d() { return 7; }' > "$tree/core/d.cpp"
  name "$commit-dirty-"
  rm "$tree/core/d.cpp" "$tree/core/a.cpp"
  name "$commit-dirty-"
  echo 'A file that the program is not made of.' > "$tree/README"
  build all
  did ''
fi

# ---- Where the compiler is gone, make says so and ends, though the headers that the last look saw are gone, too.
rm "$work/bin/cxx" "$include/openssl/version.h"
code=0
timeout 120 make -C "$tree" CXX="$work/bin/cxx" ONEDNN=0 CUDA=0 > "$work/said" 2>&1 || code=$?
[ $code = 2 ] && grep -q 'a C++17 compiler' "$work/said" || { head -n 20 "$work/said" > "$work/head"; mv "$work/head" "$work/said"; fail "without a compiler make ended with $code"; }
