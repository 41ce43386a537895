#!/bin/bash
# A stand-in for ssh that reaches the hosts of tools/netlab.sh: duplex launch --ssh tools/lab/netlab-ssh.sh.
# Usage, like ssh's: netlab-ssh.sh [-o OPTION]... HOST COMMAND
set -eu
while [ "${1:-}" = -o ]; do shift 2; done
host=$1
shift
exec bash "$(dirname "$0")/../netlab.sh" exec $((${host##*.} - 1)) sh -c "$*"
