#!/bin/bash
# Runs a test script as root in namespaces of its own, of mounts, network, host name and processes, so that it meets no
# other test and leaves nothing behind. Usage: make/isolated.sh SCRIPT. The script gets the argument `inside` and a folder
# that is removed when it ends. The exit code is the script's, or 77 if this machine cannot do it; a message says why.
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
