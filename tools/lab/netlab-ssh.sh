#!/bin/bash
# Stands in for ssh and reaches the hosts of tools/netlab.sh: duplex launch --ssh tools/lab/netlab-ssh.sh.
# Usage is like ssh's: netlab-ssh.sh [-o OPTION]... HOST COMMAND
set -eu
while [ "${1:-}" = -o ]; do shift 2; done
host=$1
shift
exec bash "$(dirname "$0")/../netlab.sh" exec $((${host##*.} - 1)) sh -c "$*"
