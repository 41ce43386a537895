#!/bin/bash
# Builds and runs exercises of the course (docs/course): compiles what the student wrote, checks it, and compares his
# predictions with what is measured.
# Usage: make exercise N=03      one of them, by its number
#        make exercises          a line for each of them (FORMAT=csv: exercise,check,cases passed,cases,predicted)
# Exit code: 0 if the check passed, 1 if not, 2 usage. `make exercises' fails only where it cannot check.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
all=$(find course -mindepth 1 -maxdepth 1 -name '[0-9]*' | sort | sed 's|course/||')

# quietly TARGET...: makes them, and prints what make says only if that fails.
quietly() {
  local log
  log=$(make --no-print-directory "$@" 2>&1) && return
  echo "$log"
  return 1
}
# compile NAME: makes the exercise's program. If what the student wrote does not compile or link, prints the first error.
compile() {
  local log
  quietly "$build/course/$1.parts" >&2 || exit 1
  log=$(make --no-print-directory "$build/course/$1" 2>&1) && return
  awk -v folder="course/$1/" '
    /: (fatal )?error: / { if (n++ == 0) { show = 3 } }
    /undefined reference to/ && n == 0 {
      sub(/.*undefined reference to/, "the program needs a function that is not there:")
      print substr($0, 1, 160); n++; exit
    }
    show > 0 { print substr($0, 1, 160); --show }
    END { if (n > 1) print "and " n - 1 " more errors behind it"; if (n == 0) exit 1 }' <<<"$log" || echo "$log"
  return 1
}
# line NAME: prints the line of an exercise as comma-separated values.
line() {
  if compile "$1" >/dev/null; then
    "$build/course/$1" --csv || [ $? = 1 ]
  else
    echo "$1,does not compile,0,0,-"
  fi
}

if [ "${1:-}" = --all ]; then
  format=${FORMAT:-table}
  case $format in
    csv) echo "exercise,check,passed,cases,predicted" ;;
    table) printf '%-22s %-18s %8s  %s\n' exercise check cases predicted ;;
    *) echo "FORMAT=$format: there are table and csv" >&2; exit 2 ;;
  esac
  for name in $all; do
    values=$(line "$name") || exit 1
    if [ "$format" = csv ]; then echo "$values"; continue; fi
    IFS=, read -r exercise check passed cases predicted <<<"$values"
    printf '%-22s %-18s %8s  %s\n' "$exercise" "$check" "$passed of $cases" "$predicted"
  done
  exit 0
fi

number=${1:-}
[[ $number =~ ^[0-9]+$ ]] && number=$(printf %02d "$((10#$number))")
name=$(grep "^${number}_" <<<"$all")
if [[ ! $number =~ ^[0-9]+$ ]] || [ -z "$name" ]; then
  echo "N=${1:-}: there is no such exercise; there are: ${all//$'\n'/ } (make exercise N=1)" >&2
  exit 2
fi
if ! found=$(compile "$name"); then
  printf 'exercise    %s\ncheck       failed: it does not compile\n%s\n' "$name" "$found"
  exit 1
fi
exec "$build/course/$name"
