#!/bin/bash
# Tests tools/benchmarks/cpu with stand-ins for duplex and for the Python that has torch: which PyTorch it takes, which of
# PyTorch's configurations it compares with, and what it writes to the page. Usage: tests/benchmarks/bench_cpu.sh
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export WORK=$work
mkdir -p "$work/venv/bin"
touch "$work/venv/pyvenv.cfg"

# program FILE: makes a script of standard input.
program() { { echo '#!/bin/bash'; cat; } >"$work/$1" && chmod +x "$work/$1"; }

program duplex <<'END_OF_PROGRAM'
case "$*" in
  *lenet*) echo "LeNet, batch 2, oneDNN $(cat "$WORK/onednn"), avx2, 2 threads: 9.00 images/s" ;;
  *broken*) echo 'duplex: there is no network broken' >&2; exit 2 ;;
  *) printf 'x\t8\t%s\t79\t81\t300.0\t0.1\t0.05\t104857600\t\n' "$(cat "$WORK/rate")" ;;
esac
END_OF_PROGRAM
program venv/bin/python <<'END_OF_PROGRAM'
case "$*" in
  -c*) cat "$WORK/version" 2>/dev/null || exit 1; echo "$(cat "$WORK/version")" 3.9 mkl AVX2 | tr ' ' '\n' ;;
  '-m pip --version') echo pip 25 ;;
  *'index versions torch'*) [ -e "$WORK/offered" ] || { echo 'ERROR: no network' >&2; exit 1; }
    echo "torch ($(cat "$WORK/offered"))" ;;
  *install*) echo "$*" >>"$WORK/installed"; cp "$WORK/offered" "$WORK/version" ;;
  *compile*) echo 'InvalidCxxCompiler: No working C++ compiler found' >&2; exit 1 ;;
  *'float32 channels_last'*) printf '40.0\t39.0\t41.0\t42.0\t209715200\n' ;;
  *'float32 default'*) printf '30.0\t29.0\t31.0\t32.0\t209715200\n' ;;
  *'bf16 default'*) printf '160.0\t159.0\t161.0\t162.0\t209715200\n' ;;
  *bf16*) printf '50.0\t49.0\t51.0\t52.0\t209715200\n' ;;
esac
END_OF_PROGRAM

failed=0
check() { if ! eval "$2"; then echo "FAILED: $1"; tail -n 40 "$work/log"; failed=1; fi; }
# bench: runs the benchmark once; leaves its exit code in $code.
bench() {
  env -u PYTHON DUPLEX="$work/duplex" TORCH_VENV="$work/venv" NETWORKS="${networks:-squeezenet}" BATCHES='8 16' STEPS=3 PASSES=2 \
    PAGE="$work/page.md" timeout 50 python3 tools/benchmarks/cpu >"$work/log" 2>&1
  code=$?
}
says() { grep -q -e "$1" "$work/${2:-page.md}"; }

echo 2.6.3 >"$work/onednn"; echo 80 >"$work/rate"; echo 2.15.0 >"$work/offered"; echo 2.14.0 >"$work/version"
bench
check 'it runs' '[ $code = 0 ]'
check 'an older PyTorch is replaced' 'says "torch==2.15.0" installed && says "PyTorch 2.15.0 (the newest that pip offers)"'
check 'ratio to the faster float32' 'says "squeezenet  *8  80.00 (79.00-81.00) .* 40.00 (39.00-41.00)  eager cl  200   2.00$"'
check 'ratio to the faster bf16' 'says "squeezenet  *8  80.00 .* 160.00 (159.00-161.00)  *eager  200   0.50$"'
check 'what failed is told' 'says "failed: .*float32 compile" && says "No working C++ compiler found"'

echo 3.7.2 >"$work/onednn"; echo 60 >"$work/rate"
bench
check 'the newest is used again' '[ "$(wc -l <"$work/installed")" = 1 ]'
check 'a section for each oneDNN' 'says "^## With oneDNN 2.6.3" && says "^## With oneDNN 3.7.2"'
check 'what is left with oneDNN 3' 'says "^    squeezenet  *8  *80.00  *60.00  0.75$"'

rm "$work/offered"; echo 3.8.0 >"$work/onednn"
bench
check 'without a network, what is there is used' '[ $code = 0 ] && says "no network" log && says "pip could not be asked"'
check 'its own section is replaced' 'says "^## With oneDNN 2.6.3" && says "^## With oneDNN 3.8.0" && ! says "3.7.2, avx2"'

networks='squeezenet broken' bench
check 'a network that does not run is told' '[ $code = 1 ] && says "broken, batch 8 did not run" && says "^    squeezenet"'

rm "$work/venv/pyvenv.cfg"
(cd tools/benchmarks/cpu && PYTHONPATH=../.. python3 -c "import peer; print(peer.Environment('$work/venv').make())") >"$work/log" 2>&1
check "somebody's folder is let alone" 'says "is no virtual environment" log && [ -x "$work/venv/bin/python" ]'
exit $failed
