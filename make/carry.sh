#!/bin/bash
# Unpacks into .deps/, as root too, what a machine with a compiler but without a network lacks to build and test:
# stb, CLI11, json, OpenSSL, GoogleTest. The Makefile looks there first; carry the folder along with the checkout.
# Usage: make/carry.sh
set -eu
cd "$(dirname "$0")/.."
packages="libstb-dev libcli11-dev nlohmann-json3-dev libssl-dev libssl3 libgtest-dev"
command -v apt-get >/dev/null || { echo "make/carry.sh takes packages of Debian or Ubuntu; there is no apt-get here" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086  # Several words.
(cd "$work" && apt-get -q download $packages >log 2>&1) || { tail -n 3 "$work/log" >&2; exit 1; }
for file in "$work"/*.deb; do dpkg-deb -x "$file" .deps; done
rm -rf .deps/usr/share .deps/usr/src .deps/usr/lib/*/lib{crypto,ssl}.a .deps/usr/lib/*/engines-3 .deps/usr/lib/*/ossl-modules
touch .deps/stamp
du -sh .deps
