#!/bin/bash
# Gives OUT/settings a new date if make has to look at the machine again (make/probe.sh): if a setting, the compiler, the list of
# installed packages, or a header that the last probe saw, has changed since then. Dates are compared with former dates of
# the same file only: packages bring files that are older than ours, and several systems may share a checkout.
# Usage: make/settings.sh OUT CXX SETTING...
# Environment: DUPLEX_ROOT  a folder that stands for / where packages are looked for, for tests/makefile.sh
set -u
cd "$(dirname "$0")/.." || exit 1
out=$1
root=${DUPLEX_ROOT:-}
[ -d "$out" ] || mkdir -p "$out"

# dates FILE...: prints a line for each of these files that is there, which is another when the file is.
dates() { stat -L -c '%s %Y %n' "$@" 2>/dev/null; }

mapfile -t programs < <(type -P $2)  # `ccache g++' is two.
now=$(
  printf '%s\n' "${@:2}" "${CPATH:-}" "${CPLUS_INCLUDE_PATH:-}" "${LIBRARY_PATH:-}"
  dates ${programs[@]+"${programs[@]}"} .deps/stamp "$root"/var/lib/dpkg/status "$root"/var/lib/rpm/{rpmdb.sqlite,Packages} \
    "$root"/usr/lib/sysimage/rpm/rpmdb.sqlite
)
[ ! -e "$out/settings" ] || [ "$now" != "$(<"$out/settings")" ] || {
  [ -s "$out/headers.txt" ] || exit 0
  mapfile -t headers <"$out/headers.txt"
  [ "$(dates "${headers[@]#* * }")" != "$(<"$out/headers.txt")" ] || exit 0
}
printf '%s\n' "$now" >"$out/settings"
