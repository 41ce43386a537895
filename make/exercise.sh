#!/bin/bash
# Builds and runs exercises of the course (docs/course): compiles what the student wrote, checks it, and compares the
# predictions with what is measured.
# Usage: make exercise N=03      one of them, by its number or its name
#        make exercises          a line for each of them (FORMAT=csv: exercise,check,cases passed,cases,predicted)
# Exit code: 0 if the check passed, 1 if not, 2 usage. `make exercises' fails only where it cannot check.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C  # The compiler's messages are read below.
make=${MAKE:-make} build=${BUILD:-build}
all=$(find course -mindepth 1 -maxdepth 1 -name '[0-9]*' | sort | sed 's|course/||')

# explain NAME LOG: prints the first error of what a student wrote, in few lines. Exit code 1 where there is none.
explain() {
  awk -v folder="course/$1/" '
    /: (fatal )?error: / { if (n++ == 0) { show = 3 } }
    /undefined reference to/ && n == 0 {
      sub(/.*undefined reference to [`\x27]/, ""); sub(/\x27$/, "")
      print "the program needs " substr($0, 1, 120) ", which is not there:"
      print "has your function the name and the parameters that its header says?"; n++; exit
    }
    show > 0 { print substr($0, 1, 160); --show }
    END { if (n == 2) print "and 1 more error"; if (n > 2) print "and " n - 1 " more errors"; exit n == 0 }' <<<"$2"
}
# compile NAME: makes the exercise's program. Prints the first warnings of what the student wrote, or, if it does not
# compile or link, the first error, and fails.
compile() {
  local log file program
  file=course/$1/${1#*_}.cpp
  [ -e "$file" ] || { echo "$file is missing; git checkout $file brings the stub back"; return 1; }
  [ -e "$build/course/$1" ] || echo "The check is compiled, which takes some seconds the first time." >&2
  log=$($make --no-print-directory "$build/course/$1.parts" 2>&1) || { echo "$log" >&2; exit 1; }
  if log=$($make --no-print-directory "$build/course/$1" 2>&1); then
    # This one runs in the whole program, which has been built.
    if [ -e "course/$1/student_store.cpp" ] && [ -e bin/duplex ]; then
      [ -e "$build/course/$1.duplex" ] || echo "The program is linked with your server." >&2
      program=$($make --no-print-directory "$build/course/$1.duplex" 2>&1) || { echo "$program" >&2; exit 1; }
    fi
    grep ': warning: ' <<<"$log" | grep "^$file" | head -n 2
    return 0
  fi
  explain "$1" "$log" || echo "$log"
  return 1
}
# line NAME: prints the line of an exercise as comma-separated values.
line() {
  if compile "$1" >/dev/null 2>&1; then
    "$build/course/$1" --csv || [ $? = 1 ]
  else
    echo "$1,does not compile,0,0,-"
  fi
}

if [ "${1:-}" = --all ]; then
  [ -e bin/duplex ] || echo "bin/duplex is missing, so that exercise 6 cannot pass: run make before." >&2
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

name=$(grep -x -- "${1:-}" <<<"$all")
number=${1:-}
[[ $number =~ ^[0-9]+$ ]] && name=$(grep "^$(printf %02d "$((10#$number))")_" <<<"$all")
if [ -z "$name" ]; then
  echo "N=${1:-}: there is no such exercise; there are: ${all//$'\n'/ } (make exercise N=1)" >&2
  exit 2
fi
if ! found=$(compile "$name"); then
  printf 'exercise    %s\ncheck       failed: it does not compile\n%s\n' "$name" "$found"
  exit 1
fi
[ -z "$found" ] || echo "$found"
exec "$build/course/$name"
