#!/bin/bash
# Runs a test script as root of a system of its own: namespaces of mounts, network, host name and processes, so that it
# meets no other and nothing of it stays. Usage: make/isolated.sh SCRIPT, which gets the argument `inside` and a folder
# that goes when it ends. Its exit code; 77: cannot be done here, with a word why.
set -eu
[ "$(id -u)" = 0 ] || { echo "skipped: a system of its own needs root"; exit 77; }
own=(unshare --mount --net --uts --pid --fork --kill-child --mount-proc)
"${own[@]}" true 2> /dev/null || { echo "skipped: namespaces may not be made here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
code=0
"${own[@]}" bash "$1" inside "$work" || code=$?
exit $code
