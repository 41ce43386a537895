#!/bin/bash
# Runs fuzz targets (tests/fuzz/targets) under libFuzzer, AddressSanitizer and UBSan, one after the other, then gives what
# they found to the targets of an ordinary build. Corpora are kept in build-fuzz/corpus/NAME and grow from run to run; an
# input that ends a target lies in build-fuzz/finds/ afterwards. Prints a table of Markdown.
# Usage: make fuzz [MINUTES=20] [RUNS=N] [ONLY="NAME..."]
#   MINUTES   of all targets together
#   RUNS      executions of each, however long they take
set -u
cd "$(dirname "$0")/.." || exit 1
folder=build-fuzz

probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
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
if [ "${RUNS:-}" ]; then limit=-runs=$RUNS; else limit=-max_total_time=$((seconds > 0 ? seconds : 1)); fi

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
  corpus=$folder/corpus/$name log=$folder/logs/$name.log
  mkdir -p "$corpus"
  start=$SECONDS result=clean
  if ! "$folder/fuzz/$name" "$limit" -max_len=2048 -timeout=25 -rss_limit_mb=4096 -malloc_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$folder/finds/$name-" "$corpus" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    result="see $log"
  elif ! build/tests/fuzz "$name" "$corpus" >>"$log" 2>&1; then
    result="release: $log"
  fi
  [ "$result" = clean ] || bad=1
  row "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" $((SECONDS - start)) \
    "$(grep -o ' cov: [0-9]*' "$log" | tail -n 1 | tr -dc 0-9)" "$(find "$corpus" -type f | wc -l)" "$result"
done
exit $bad
