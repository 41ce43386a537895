#!/bin/bash
# Unpacks into .deps/, as root too, the packages that another machine lacks to build. The Makefile looks there first; take
# the folder to the other machine's checkout, where make/deps.sh gets the rest.
# By default these are stb, CLI11 and json, which are headers alone and fit any distribution. LIBRARIES=1 adds OpenSSL,
# zlib and GoogleTest, for a machine like this one that has a compiler and no network.
# Usage: make carry [LIBRARIES=1]
set -eu
export LC_ALL=C # apt's words are read.
cd "$(dirname "$0")/.."
command -v apt-get >/dev/null || { echo "make carry takes packages of Debian or Ubuntu; there is no apt-get here." >&2; exit 1; }
packages=(libstb-dev libcli11-dev nlohmann-json3-dev)
if [ "${LIBRARIES:-}" = 1 ]; then
  # The package of the library itself is named differently in each distribution.
  library=$(apt-cache depends libssl-dev 2>/dev/null | sed -n 's/^ *Depends: \(libssl[0-9].*\)/\1/p')
  [ "$library" ] || { echo "make carry: apt-cache does not say which package libssl-dev's library is in; try apt-get update." >&2; exit 1; }
  packages+=(libssl-dev $library zlib1g-dev zlib1g libgtest-dev)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/files"
if ! (cd "$work" && apt-get -q download "${packages[@]}" >log 2>&1); then
  tail -n 3 "$work/log" >&2
  echo "make carry needs the lists of packages (as root, apt-get update) of Debian from 12 on, or of Ubuntu from 22.04 on." >&2
  exit 1
fi
for file in "$work"/*.deb; do dpkg-deb -x "$file" "$work/files"; done
cd "$work/files"
# A bundle has the licences (make/bundle/bundle.sh).
find usr/share -mindepth 1 ! -path 'usr/share/doc' ! -path 'usr/share/doc/*' -delete
find usr/share \( -type f -o -type l \) ! -name copyright -delete
rm -rf usr/src usr/lib/*/lib{crypto,ssl}.a usr/lib/*/engines-* usr/lib/*/ossl-modules
[ "${LIBRARIES:-}" = 1 ] || rm -rf usr/lib
find . -type f -o -type l >"$work/carried"  # make/deps.sh keeps these when its own unpacking was interrupted.
cd "$OLDPWD"
mkdir -p .deps
cp -a "$work/files/." "$work/carried" .deps
touch .deps/stamp
echo "In .deps/ now: ${packages[*]}, $(du -sh "$work/files" | cut -f 1)."
