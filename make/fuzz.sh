#!/bin/bash
# Runs fuzz targets (tests/fuzz/targets) under libFuzzer, AddressSanitizer and UBSan, one after the other, each in a process
# per core, then gives what they found to the targets of an ordinary build. Corpora are kept in build-fuzz/corpus/NAME and
# grow from run to run; an input that ends a target lies in build-fuzz/finds/ afterwards. Prints a table of Markdown.
# Usage: make fuzz [MINUTES=20] [RUNS=N] [ONLY="NAME..."]
#   MINUTES   of all targets together
#   RUNS      executions of each, of all its processes together, however long they take
set -u
cd "$(dirname "$0")/.." || exit 1
folder=build-fuzz

probe=$(mktemp -d)
pids=()
trap 'rm -rf "$probe"; kill ${pids+"${pids[@]}"} 2>/dev/null' EXIT
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$probe/a.cpp"
if ! clang++ -fsanitize=fuzzer,address,undefined "$probe/a.cpp" -o "$probe/a.out" 2>/dev/null; then
  echo "make fuzz: skipped, since there is no clang with libFuzzer here (Debian has it in clang and libclang-rt-dev)"
  exit 0
fi
all=$(basename -s .cpp tests/fuzz/targets/*.cpp)
names=${ONLY:-$all}
for name in $names; do
  [ -e "tests/fuzz/targets/$name.cpp" ] || { echo "ONLY=$name: there is no such target; there are:" $all >&2; exit 2; }
done
set -- $names
seconds=$((${MINUTES:-20} * 60 / $#))

# jobs_of NAME: prints in how many processes a target runs. The exchange waits for its threads more than it computes.
jobs_of() { if [ "$1" = exchange ]; then echo $((3 * $(nproc))); else nproc; fi; }
# fuzz NAME: runs the target in its processes, with a log for each, which read from one another what they find.
fuzz() {
  local name=$1 jobs job code=0 limit options=()
  pids=()
  jobs=$(jobs_of "$name")
  limit=-max_total_time=$((seconds > 0 ? seconds : 1))
  [ -z "${RUNS:-}" ] || limit=-runs=$(((RUNS + jobs - 1) / jobs))
  # libFuzzer's entropic schedule takes more time than the exchange itself, which has 20,000 features.
  [ "$name" != exchange ] || options=(-entropic=0)
  for ((job = 1; job <= jobs; job++)); do
    "$folder/fuzz/$name" "$limit" ${options+"${options[@]}"} -max_len=2048 -timeout=25 -rss_limit_mb=4096 \
      -malloc_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$folder/finds/$name-" \
      "$folder/corpus/$name" "tests/fuzz/corpus/$name" >"$folder/logs/$name-$job.log" 2>&1 &
    pids+=($!)
  done
  for job in "${pids[@]}"; do wait "$job" || code=1; done
  pids=()
  return $code
}
# of_logs NAME PATTERN: prints a number that follows the pattern in each of a target's logs, the last one of each.
of_logs() {
  local log
  for log in "$folder/logs/$1"-*.log; do sed -n "s/^.*$2\([0-9][0-9]*\).*/\1/p" "$log" | tail -n 1; done
}

bash make/deps.sh build || exit
make --no-print-directory ONLY= BUILD=$folder CXX=clang++ SANITIZE=fuzz ONEDNN=0 CUDA=0 "${@/#/$folder/fuzz/}" || exit
make --no-print-directory ONLY= BUILD=build SANITIZE= build/tests/fuzz || exit

mkdir -p $folder/finds $folder/logs
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
bad=0
row() { printf '| %-13s | %11s | %8s | %6s | %6s | %-14s |\n' "$@"; }
row target executions seconds edges corpus result
row --- --- --- --- --- ---
for name; do
  corpus=$folder/corpus/$name
  rm -f "$folder/logs/$name"-*.log
  mkdir -p "$corpus"
  start=$SECONDS result=clean
  if ! fuzz "$name"; then
    result="see $folder/logs/$name-*.log"
  elif ! build/tests/fuzz "$name" "$corpus" >"$folder/logs/$name-release.log" 2>&1; then
    result="release: see $folder/logs/$name-release.log"
  fi
  [ "$result" = clean ] || bad=1
  row "$name" "$(of_logs "$name" 'stat::number_of_executed_units: *' | awk '{ sum += $1 } END { printf "%d", sum }')" \
    $((SECONDS - start)) "$(of_logs "$name" ' cov: ' | sort -n | tail -n 1)" "$(find "$corpus" -type f | wc -l)" "$result"
done
exit $bad
