#!/bin/bash
# Prints the name of what is built, as `duplex --version` has it: the commit, with "-dirty" behind it if files have changed
# since, and a digest of the changed ones if the program's sources are among them; outside of a checkout "unknown" and a
# digest of the sources. So programs of different sources have different names.
# Usage: make/commit.sh
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
folders=(core layers models datasets net tools make)
sources=(Makefile make/registry.sh)
for folder in "${folders[@]}"; do sources+=("$folder/*."{cpp,cu,h}); done  # These are patterns for git.

# changed: lists the sources that are not as in the commit. A new file is no change to git, but the Makefile builds it.
changed() {
  [[ $commit != *-dirty ]] || git diff-index --name-only -z HEAD -- "${sources[@]}"
  git ls-files --others --exclude-standard -z -- "${sources[@]}"
}
# digest: prints that of the files which are listed on standard input. A file that was removed counts by its name.
digest() { sort -z | xargs -0 sha256sum 2>&1 | sha256sum | cut -c 1-8; }

# This folder may lie in the checkout of something else.
if ! { git ls-files --error-unmatch Makefile && commit=$(git describe --always --dirty); } >/dev/null 2>&1; then
  commit=unknown-$(find Makefile "${folders[@]}" \( -name '*.cpp' -o -name '*.cu' -o -name '*.h' -o -name Makefile -o -name registry.sh \) -print0 | digest)
elif changed | grep -q .; then
  commit=${commit%-dirty}-dirty-$(changed | digest)
fi
echo "$commit"
