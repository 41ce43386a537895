#!/bin/bash
# Tests make/deps.sh with the real dnf (version 4), where Debian's packages dnf, dnf-plugins-core, rpm, createrepo-c and cpio are
# installed: on repositories of small packages, made after the lists of tests/enterprise_linux, for a root of its own. What it
# finds holds for the stand-in of tests/enterprise_linux.sh, too.
set -eu
cd "$(dirname "$0")/.."
for program in dnf rpm rpmbuild createrepo_c rpm2cpio cpio setpriv; do
  command -v $program >/dev/null || { echo "skipped: needs $program (dnf, dnf-plugins-core, rpm, createrepo-c, cpio)"; exit 77; }
done
[[ $(dnf --version 2>/dev/null) = 4.* ]] || { echo "skipped: needs dnf 4"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: rpm installs below another root for root alone"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
lists=$PWD/tests/enterprise_linux
. "$lists/files.sh"

mkdir "$work/bin"
for tool in awk basename bash cat chmod cp cpio cut date dirname find grep head id ln ls mkdir mktemp mv readlink realpath rm rpm2cpio sed sort tail tar touch tr uname; do
  ln -s "$(command -v $tool)" "$work/bin/$tool"
done
printf '#!/bin/bash\nPATH=%q exec %q --config=%q --disableplugin=local,generate_completion_cache "$@"\n' "$PATH" "$(command -v dnf)" "$work/dnf.conf" >"$work/bin/dnf"
chmod +x "$work/bin/dnf"

# package FOLDER NAME VERSION [PROVIDES]: builds a package into the folder.
package() {
  local spec=$work/$2.spec
  rm -rf "$work/files"
  place "$work/files" "$2" "$3"
  {
    printf 'Name: %s\nVersion: %s\nRelease: 1\nSummary: Test\nLicense: none\nAutoReqProv: no\n%s\n' "$2" "$3" "${4:+Provides: $4}"
    printf '%%description\nTest\n%%prep\n%%build\n%%install\nmkdir -p %%{buildroot}\ncp -a %s/files/. %%{buildroot}\n%%files\n' "$work"
    (cd "$work/files" && find . -type f | sed 's/^\.//')
    # This is the one by which root gets a repository.
    [ "$2" != epel-release ] || echo /etc/yum.repos.d/epel.repo
  } >"$spec"
  if [ "$2" = epel-release ]; then
    mkdir -p "$work/files/etc/yum.repos.d"
    repository epel 1 >"$work/files/etc/yum.repos.d/epel.repo"
  fi
  rpmbuild -bb --quiet --define "_topdir $work/build" --define "_rpmdir $1" --define '__os_install_post %{nil}' --define 'debug_package %{nil}' \
    --target x86_64 "$spec" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}
# repository NAME ENABLED: prints its section of a file in yum.repos.d.
repository() { printf '[%s]\nname=%s\nbaseurl=file://%s/repositories/%s\nenabled=%s\ngpgcheck=0\n' "$1" "$1" "$work" "${3:-$1}" "$2"; }

# machine LIST BUILDER OS-RELEASE-LINE...: makes the machine, with all repositories but BUILDER and EPEL enabled.
machine() {
  local repo name version provides
  root=$work/root
  rm -rf "$root" "$work/repositories" "$work/checkout" "$work/cache" "$work"/epel-mirror
  mkdir -p "$root/etc/yum.repos.d" "$work/checkout/make" "$work/repositories"
  cp make/{deps,dnf,distribution}.sh "$work/checkout/make"
  while read -r repo name version provides; do
    case $repo in '#' | '') continue ;; esac
    mkdir -p "$work/repositories/$repo"
    package "$work/repositories/$repo" "$name" "$version" "$provides"
  done <"$lists/$1"
  for repo in "$work"/repositories/*; do
    createrepo_c -q "$repo"
    case ${repo##*/} in
      epel) ;;
      builder) repository "$2" 0 builder ;;
      *) repository "${repo##*/}" 1 ;;
    esac
  done >"$root/etc/yum.repos.d/machine.repo"
  [ "$2" = none ] || [ -e "$work/repositories/builder" ] || { mkdir "$work/repositories/builder"; createrepo_c -q "$work/repositories/builder"; repository "$2" 0 builder >>"$root/etc/yum.repos.d/machine.repo"; }
  printf '[main]\ninstallroot=%s\nreposdir=%s/etc/yum.repos.d\ncachedir=%s/cache\nlogdir=%s/cache\npersistdir=%s/cache\nplugins=1\n' \
    "$root" "$root" "$work" "$work" "$work" >"$work/dnf.conf"
  printf '%s\n' "${@:3}" >"$root/etc/os-release"
  for name in 8 9 10; do mkdir -p "$work/epel-mirror/$name/Everything"; ln -sfn "$work/repositories/epel" "$work/epel-mirror/$name/Everything/$(uname -m)"; done
}
# deps CODE [COMMAND-BEFORE...]: runs make/deps.sh build, and fails unless it ends with this code.
deps() {
  local code=0
  env -u CXX -u CPATH -u CPLUS_INCLUDE_PATH -u ONEDNN HOME=/home DUPLEX_ROOT="$root" EPEL="file://$work/epel-mirror" PATH="$work/bin" \
    "${@:2}" "$work/bin/bash" "$work/checkout/make/deps.sh" build >"$work/said" 2>&1 || code=$?
  [ $code = "$1" ] || { echo "make/deps.sh ended with $code instead of $1"; cat "$work/said"; exit 1; }
}
says() { grep -qF -e "$1" "$work/said" || { echo "not said: $1"; cat "$work/said"; exit 1; }; }
# installed PACKAGE...: fails unless these packages are on the machine, and no others.
installed() {
  local there
  there=$(HOME=/home rpm --root "$root" -qa --qf '%{NAME}\n' | sort)
  [ "$there" = "$(printf '%s\n' "$@" | sort)" ] || { echo "installed are:" $there; cat "$work/said"; exit 1; }
}
carried() {
  mkdir -p "$work"/checkout/.deps/usr/include/{CLI,nlohmann,stb}
  touch "$work"/checkout/.deps/usr/include/{CLI/CLI.hpp,nlohmann/json.hpp,stb/stb_image.h}
}
headers='stb_image-devel cli11-devel json-devel openssl-devel'

machine el8 powertools 'ID="almalinux"' 'ID_LIKE="rhel centos fedora"' 'VERSION_ID="8.10"'
deps 1
says 'CLI11: cli11-devel is 1.8.0 here, and 2.1 or newer is wanted'
says 'json: json-devel is 3.6.1 here, and 3.9 or newer is wanted'
installed epel-release
grep -A4 '^\[powertools\]' "$root/etc/yum.repos.d/machine.repo" | grep -qx 'enabled=1'
carried
deps 0
installed epel-release gcc-toolset-14-gcc-c++ openssl-devel zlib-devel
deps 0

# Without root: nothing of the machine changes.
machine el8 powertools 'ID="almalinux"' 'ID_LIKE="rhel centos fedora"' 'VERSION_ID="8.10"'
carried
mkdir -p "$root"/{tmp,home/.rpmdb}  # Here is where Debian's rpm keeps its database.
chown -R nobody "$work/checkout" "$root"
deps 0 "$(command -v setpriv)" --reuid=65534 --clear-groups
says 'Unpacking packages into .deps/ (no root here): gcc-toolset-14-gcc-c++ openssl-devel zlib-devel'
installed
[[ $("$work/checkout/.deps/bin/g++") = "g++ 14 by $work/checkout/.deps/opt/rh/gcc-toolset-14/root/usr/bin/g++ "* ]]
[ -e "$work/checkout/.deps/usr/include/zlib.h" ]
grep -A4 '^\[powertools\]' "$root/etc/yum.repos.d/machine.repo" | grep -qx 'enabled=0'

machine el9 crb 'ID="rocky"' 'ID_LIKE="rhel centos fedora"' 'VERSION_ID="9.6"'
deps 0
installed epel-release gcc-c++ zlib-devel onednn-devel $headers
machine el10 crb 'ID="centos"' 'ID_LIKE="rhel fedora"' 'VERSION_ID="10"'
deps 0
says 'oneDNN: no repository here has onednn-devel; going without it'
installed epel-release gcc-c++ zlib-ng-compat-devel $headers
machine fedora none 'ID=fedora' 'VERSION_ID=43'
deps 0
installed gcc-c++ zlib-ng-compat-devel onednn-devel $headers
