#!/bin/bash
# Tests what make/deps.sh and make/probe.sh do on Enterprise Linux 8, 9, 10 and Fedora, with a stand-in for dnf and lists of
# what each release packages (tests/enterprise_linux): which packages and repositories they ask for, which compiler they take,
# what they say where something is not packaged. docs/platforms.md has the same as a table.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lists=$PWD/tests/enterprise_linux

# This is all that PATH has: neither apt-get, nor a compiler, nor what make/deps.sh would get in other groups.
mkdir "$work/bin"
for tool in awk basename bash cat chmod cp cut date dirname find grep head ln ls mkdir mktemp mv readlink realpath rm sed sort tail tar touch tr uname; do
  ln -s "$(command -v $tool)" "$work/bin/$tool"
done
ln -s "$lists/dnf" "$work/bin/dnf"
printf '#!/bin/bash\n[ "$1" != -un ] || { echo someone; exit; }\ncat "$STATE/uid"\n' >"$work/bin/id"
printf '#!/bin/bash\necho "subscription-manager $*" >>"$STATE/log"\necho "${@: -1}" >>"$STATE/enabled"\n' >"$work/bin/subscription-manager"
# These two have a tar between them.
printf '#!/bin/bash\ntar -C "$STATE/unpacked/$(cat "$1")" -cf - .\n' >"$work/bin/rpm2cpio"
printf '#!/bin/bash\n[ "$*" = "-idmu --quiet" ] && tar -xf -\n' >"$work/bin/cpio"
printf '#!/bin/bash\n[ "$*" = -dumpversion ] && echo 8\n' >"$work/bin/g++"
chmod +x "$work"/bin/{id,subscription-manager,rpm2cpio,cpio,g++}

# machine LIST USER-ID ENABLED DISABLED OS-RELEASE-LINE...: makes a new machine and a checkout. Its g++ is that of the list:
# 8, or none.
machine() {
  export STATE=$work/state DUPLEX_ROOT=$work/root
  rm -rf "$STATE" "$DUPLEX_ROOT" "$work/checkout"
  mkdir -p "$STATE" "$DUPLEX_ROOT/etc" "$work/checkout/make"
  cp make/{deps,dnf,distribution}.sh "$work/checkout/make"
  cp "$lists/$1" "$STATE/packages"
  echo "$2" >"$STATE/uid"
  printf '%s\n' $3 >"$STATE/enabled"
  printf '%s\n' $4 >"$STATE/disabled"
  : >"$STATE/log"
  printf '%s\n' "${@:5}" >"$DUPLEX_ROOT/etc/os-release"
  if [ "$1" = el8 ]; then printf '#!/bin/bash\n[ "$*" = -dumpversion ] && echo 8\n' >"$work/bin/g++"; chmod +x "$work/bin/g++"
  else rm -f "$work/bin/g++"; fi
}
# carried: brings what `make carry' brings.
carried() {
  mkdir -p "$work"/checkout/.deps/usr/include/{CLI,nlohmann,stb}
  touch "$work"/checkout/.deps/usr/include/{CLI/CLI.hpp,nlohmann/json.hpp,stb/stb_image.h}
}
# deps CODE GROUP...: runs make/deps.sh and fails unless it ends with this code.
deps() {
  local code=0
  : >"$STATE/log"
  env -u CXX -u CPATH -u CPLUS_INCLUDE_PATH -u ONEDNN -u EPEL FASHION_MNIST=here PATH="$work/bin" bash "$work/checkout/make/deps.sh" "${@:2}" >"$work/said" 2>&1 || code=$?
  ! grep -F stand-in: "$work/said" || { cat "$work/said"; exit 1; }
  [ $code = "$1" ] || { echo "make/deps.sh ${*:2} ended with $code instead of $1"; cat "$work/said"; exit 1; }
}
# says LINE: fails unless this line, all of it, was printed.
says() { grep -qxF -e "$1" "$work/said" || { echo "not said: $1"; cat "$work/said"; exit 1; }; }
# ran LINE...: fails unless these commands, and no others, changed the machine or downloaded.
ran() {
  [ "$(printf '%s\n' "$@")" = "$(cat "$STATE/log")" ] || { echo 'these commands were to be run:'; printf '%s\n' "$@"; echo 'these were:'; cat "$STATE/log" "$work/said"; exit 1; }
}

alma8=('ID="almalinux"' 'ID_LIKE="rhel centos fedora"' 'VERSION_ID="8.10"')
rocky9=('ID="rocky"' 'ID_LIKE="rhel centos fedora"' 'VERSION_ID="9.6"')
stream10=('ID="centos"' 'ID_LIKE="rhel fedora"' 'VERSION_ID="10"')
red_hat8=('ID="rhel"' 'ID_LIKE="fedora"' 'VERSION_ID="8.10"')
oracle9=('ID="ol"' 'ID_LIKE="fedora"' 'VERSION_ID="9.5"')
fedora=('ID=fedora' 'VERSION_ID=43')
bundle="Or run \`make bundle' where Duplex can be built, and bring its archive, which runs here as it is (docs/bundle.md)."
headers="it is headers alone: run \`make carry' in a checkout on Debian 12, Ubuntu 22.04 or newer, and copy its .deps/ into this one."

# ---- Enterprise Linux 8: EPEL's CLI11, json and oneDNN are too old, the system's g++ too.
machine el8 0 'baseos appstream extras' 'powertools epel-testing' "${alma8[@]}"
deps 1 build
says "CLI11: cli11-devel is 1.8.0 here, and 2.1 or newer is wanted; $headers"
says "json: json-devel is 3.6.1 here, and 3.9 or newer is wanted; $headers"
says "oneDNN: onednn-devel is 1.5 here, and 2.0 or newer is wanted; going without it, on the slow reference loops; an archive of \`make bundle' has it (docs/bundle.md)."
says "$bundle"
ran 'dnf config-manager --set-enabled powertools' 'dnf -y install epel-release'
[ ! -e "$DUPLEX_ROOT/usr" ] || { echo 'it installed half of it'; exit 1; }
# With the headers of `make carry', it gets the rest: the newest toolset that has been tried.
carried
deps 0 build
ran 'dnf -q -y install gcc-toolset-14-gcc-c++ openssl-devel zlib-devel'
deps 0 build
ran ''
# GoogleTest is too old for the tests; the build goes on without.
machine el8 0 'baseos appstream extras powertools epel' '' "${alma8[@]}"
carried
deps 0 build test
says 'GoogleTest: gtest-devel is 1.8.0 here, and 1.10 or newer is wanted; going without tests; make builds without it.'
# A toolset that is newer than those that have been tried is not chosen; one that is there already is used.
machine el8 0 'baseos appstream extras powertools epel' '' "${alma8[@]}"
carried
echo 'appstream gcc-toolset-15-gcc-c++ 15.1.1' >>"$STATE/packages"
sed -i '/^appstream gcc-toolset-1[34]-/d' "$STATE/packages"
deps 0 build
ran 'dnf -q -y install gcc-toolset-12-gcc-c++ openssl-devel zlib-devel'
# Red Hat's own: subscription-manager, and EPEL from Fedora's server, since no repository has epel-release.
machine el8 0 'rhel-8-for-x86_64-baseos-rpms baseos appstream' \
  'codeready-builder-for-rhel-8-x86_64-debug-rpms codeready-builder-for-rhel-8-x86_64-rpms' "${red_hat8[@]}"
sed -i '/ epel-release /d' "$STATE/packages"
carried
deps 0 build
ran 'subscription-manager repos --enable codeready-builder-for-rhel-8-x86_64-rpms' \
  'dnf -y install https://dl.fedoraproject.org/pub/epel/epel-release-latest-8.noarch.rpm' \
  'dnf -q -y install gcc-toolset-14-gcc-c++ openssl-devel zlib-devel'
# Without root: EPEL and the other repository serve this one call; the toolset is unpacked, and runs from there.
machine el8 1000 'baseos appstream extras' 'powertools' "${alma8[@]}"
carried
deps 0 build
sed -i "s|--destdir [^ ]*|--destdir X|; s|/$(uname -m)/|/ARCH/|" "$STATE/log"
ran 'dnf -q -y --enablerepo=powertools --repofrompath=epel,https://dl.fedoraproject.org/pub/epel/8/Everything/ARCH/ download --resolve --destdir X gcc-toolset-14-gcc-c++ openssl-devel zlib-devel'
said=$("$work/checkout/.deps/bin/g++" hello)
toolset=$work/checkout/.deps/opt/rh/gcc-toolset-14/root/usr/bin
[[ $said = "g++ 14 by $toolset/g++ "*" hello PATH=$toolset:"* ]] || { echo ".deps/bin/g++ says: $said"; exit 1; }
[ "$(readlink "$toolset/ld")" = ld.bfd ] || { echo 'the toolset has no linker'; exit 1; }
[ -e "$work/checkout/.deps/usr/include/zlib.h" ] && [ ! -e "$work/checkout/.deps/lib64/libc.so.6" ] || { echo 'zlib is to be unpacked, and the C library not'; exit 1; }
deps 0 build
ran ''

# ---- Enterprise Linux 9: all is packaged.
machine el9 0 'baseos appstream extras' 'crb epel-testing' "${rocky9[@]}"
deps 0 build test
sed -i 's/ gnuplot .*iproute-tc.*/ .../' "$STATE/log"  # Other programs for the tests come last.
ran 'dnf config-manager --set-enabled crb' 'dnf -y install epel-release' \
  'dnf -q -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel onednn-devel gtest-devel ...'
# A minimal system has no config-manager.
machine el9 0 'baseos appstream extras' 'crb' "${rocky9[@]}"
touch "$STATE/no-plugins"
deps 0 build
ran 'dnf -y install dnf-plugins-core' 'dnf config-manager --set-enabled crb' 'dnf -y install epel-release' \
  'dnf -q -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel onednn-devel'
# Oracle's names.
machine el9 0 'baseos appstream' 'ol9_codeready_builder ol9_developer_EPEL' "${oracle9[@]}"
deps 0 build
ran 'dnf config-manager --set-enabled ol9_codeready_builder' 'dnf config-manager --set-enabled ol9_developer_EPEL' \
  'dnf -q -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel onednn-devel'
machine el9 0 'baseos appstream' 'ol9_codeready_builder' "${oracle9[@]}"
sed -i 's/^extras epel-release/appstream oracle-epel-release-el9/' "$STATE/packages"
deps 0 build
ran 'dnf config-manager --set-enabled ol9_codeready_builder' 'dnf -y install oracle-epel-release-el9' \
  'dnf -q -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel onednn-devel'
# All is enabled already.
machine el9 0 'baseos appstream extras CRB epel' 'epel-testing' "${rocky9[@]}"
deps 0 build
ran 'dnf -q -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel onednn-devel'
# The program says what root could not do, and what is left to do.
machine el9 0 'baseos appstream extras epel' 'crb' "${rocky9[@]}"
echo install >"$STATE/broken"
deps 1 build
says 'dnf could not install them.'
says 'As root: dnf -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel onednn-devel'
machine el9 0 'baseos appstream extras' 'crb' "${rocky9[@]}"
echo install >"$STATE/broken"
deps 1 build
says 'This failed: dnf -y install epel-release.'
# Without root, where the download fails, the line is there that root has to run.
machine el9 1000 'baseos appstream extras' 'crb' "${rocky9[@]}"
touch "$STATE/no-plugins"
deps 1 build
says 'dnf could not download them.'
says 'As root: dnf -y install dnf-plugins-core && dnf config-manager --set-enabled crb && dnf -y install epel-release && dnf -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel onednn-devel'
says "$bundle"
# So it is without a network; but optional packages stop nothing.
machine el9 1000 'baseos appstream extras' 'crb' "${rocky9[@]}"
echo repoquery >"$STATE/broken"
deps 1 build
says "Error: Failed to download metadata for repo 'appstream'"
says 'dnf could not look up epel-release.'
says 'As root: dnf config-manager --set-enabled crb && dnf -y install epel-release && dnf -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel onednn-devel'
mkdir -p "$DUPLEX_ROOT"/usr/include/{stb,CLI,nlohmann,openssl,gtest}
touch "$DUPLEX_ROOT"/usr/include/{stb/stb_image.h,CLI/CLI.hpp,nlohmann/json.hpp,openssl/hmac.h,zlib.h,gtest/gtest.h}
printf '#!/bin/bash\necho 11\n' >"$work/bin/g++" && chmod +x "$work/bin/g++"
deps 0 build
says 'dnf could not look up epel-release; going without onednn-devel.'

# ---- Enterprise Linux 10: there is no oneDNN, and zlib-devel has another name.
machine el10 0 'baseos appstream extras' 'crb' "${stream10[@]}"
deps 0 build
says "oneDNN: no repository here has onednn-devel; going without it, on the slow reference loops; an archive of \`make bundle' has it (docs/bundle.md)."
ran 'dnf config-manager --set-enabled crb' 'dnf -y install epel-release' \
  'dnf -q -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel'

# ---- Fedora: nothing has to be enabled. A package that it cannot do without is named.
machine fedora 0 'fedora updates' 'fedora-cisco-openh264 updates-testing' "${fedora[@]}"
deps 0 build
ran 'dnf -q -y install gcc-c++ stb_image-devel cli11-devel json-devel openssl-devel zlib-devel onednn-devel'
machine fedora 0 'fedora updates' '' "${fedora[@]}"
sed -i '/ stb_image-devel /d; / openssl-devel /d' "$STATE/packages"
deps 1 build
says "stb: no repository here has stb_image-devel; $headers"
says 'OpenSSL: no repository here has openssl-devel; Duplex cannot be built here.'
ran ''

# ---- Older systems have yum alone.
machine el8 0 'base' '' 'ID="centos"' 'ID_LIKE="rhel fedora"' 'VERSION_ID="7"'
mv "$work/bin/dnf" "$work/bin/yum"
deps 1 build
grep -q "CentOS 7 and older systems are too old to build on: run \`make bundle'" "$work/said" || { cat "$work/said"; exit 1; }
mv "$work/bin/yum" "$work/bin/dnf"

# ---- make/probe.sh takes the toolset's compiler where the system's is too old, with the toolset's assembler and linker.
# ccache would look for the compiler in PATH, and find the one that is made here.
real=
for gxx in $(type -aP g++); do
  case $(readlink -f "$gxx") in */ccache) ;; *) real=$gxx; break ;; esac
done
[ "$real" ] || { echo 'make/probe.sh was not tested: there is no g++ here'; exit 0; }
machine el8 0 '' '' "${alma8[@]}"
touch "$DUPLEX_ROOT/etc/redhat-release"
mkdir "$work/old"
printf '#!/bin/bash\n[ "$*" != -dumpversion ] || { echo 8; exit; }\nexec %q -w -U__GNUC__ -D__GNUC__=8 "$@"\n' "$real" >"$work/old/g++"
chmod +x "$work/old/g++"
# probe: runs it as on the machine.
probe() { env -u CXX PATH="$work/old:$PATH" ONEDNN=0 CUDA=0 bash make/probe.sh "$work/out"; }
# config TEXT: fails unless a line of what was found begins with this.
config() { grep -q "^ *$1" "$work/out/config.txt" || { echo "the probe does not say: $1"; cat "$work/out/config.txt"; exit 1; }; }
if [ ! -x .deps/bin/g++ ]; then
  probe
  config 'g++ from 9 on (g++ is 8)'
  for number in 9 13 8; do
    toolset=$DUPLEX_ROOT/opt/rh/gcc-toolset-$number/root/usr/bin
    mkdir -p "$toolset"
    printf '#!/bin/bash\n[ "$*" != -dumpversion ] || { echo %s; exit; }\necho "$PATH" >%q\nexec %q "$@"\n' $number "$work/path-$number" "$real" >"$toolset/g++"
    chmod +x "$toolset/g++"
  done
  probe
  config 'found    compiler'
  cxx=$(sed -n 's/^CONFIG_CXX := //p' "$work/out/config.mk")
  [ "$cxx" = "$work/out/gcc-toolset-13/g++" ] || { echo "the compiler is $cxx"; exit 1; }
  rm -f "$work"/path-*
  echo 'int main() {}' | "$cxx" -x c++ - -o "$work/program"
  [[ $(cat "$work/path-13") = "$DUPLEX_ROOT/opt/rh/gcc-toolset-13/root/usr/bin:"* ]] || { echo 'the toolset does not come first'; exit 1; }
fi
