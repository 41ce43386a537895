#!/bin/bash
# Tests tools/gpu_check.sh without a GPU: make, nvidia-smi, python3 and what they build or start are stand-ins of a few
# lines, which fail and hang when told to. Usage: tests/gpu_check.sh
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,cuda,told,programs}
export WORK=$work

# program FILE: makes a script of standard input, in which `told WORD` succeeds if it is to misbehave in that way, and `hang`
# hangs in a process that the file `hangs` names.
program() { { printf '#!/bin/bash\ntold() { [ -e "$WORK/told/$1" ]; }\nhang() { sleep 60 & echo $! >"$WORK/hangs"; wait; exit 1; }\n'; cat; } >"$work/$1" && chmod +x "$work/$1"; }

program bin/nvidia-smi <<'END'
told no-gpu && exit 9
case "$*" in
  *'-l 5'*) echo '1980, 2619, 41, 350.5' ;;
  *noheader*) echo 'NVIDIA H100 80GB HBM3, 580.65.06, 81559 MiB' ;;
  *) echo 'a table of the GPU' ;;
esac
END
program cuda/nvcc <<'END'
echo 'Cuda compilation tools, release 13.0, V13.0.48'
END
program cuda/compute-sanitizer <<'END'
[ "$1 $3 $4 $5 $6" = '--tool --error-exitcode 9 --report-api-errors no' ] || exit 1
echo "sanitizer $2" >>"$WORK/done"
if told "races-$2"; then echo '========= Error: Race reported between Write access'; exit 9; fi
told "hang-$2" && hang
if told "reads-$2"; then
  echo '========= Uninitialized __global__ memory read of size 4 bytes'
  told ours && echo '=========     at void duplex::cudnn::run_for_each'
  exit 9
fi
case $2 in
  racecheck) echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)' ;;
  *) echo '========= ERROR SUMMARY: 0 errors' ;;
esac
END
program bin/make <<'END'
for word; do
  case $word in
    BUILD=*) build=${word#BUILD=} ;;
    WERROR=1) werror=1 ;;
    report) report=1 ;;
  esac
done
mkdir -p "$build"/{bin,tests}
echo '  found    CUDA        13.0, cuDNN 9.19.0' >"$build/config.txt"
printf 'CONFIG_NVCC := %s -ccbin g++\nCONFIG_GTEST := 1\n' "$WORK/cuda/nvcc" >"$build/config.mk"
[ "${report:-}" ] && exit
echo "make${werror:+ WERROR}" >>"$WORK/done"
told hang-build && hang
if told no-build; then seq -f 'line %g' 50; echo 'a.cpp:3: error: no such thing'; exit 2; fi
if told warns && [ "${werror:-}" ]; then echo 'b.cpp:4: error: unused [-Werror]'; exit 2; fi
cp "$WORK/programs/duplex" "$build/bin"
for suite in core layers models tools cudnn; do cp "$WORK/programs/suite" "$build/tests/$suite"; done
END
program programs/suite <<'END'
name=${0##*/}
echo "suite $name" >>"$WORK/done"
echo '[ RUN      ] A.Passes'
echo '[       OK ] A.Passes (1 ms)'
if told "fail-$name"; then
  printf '%s\n' '[ RUN      ] Conv.Forward/cudnn' 'conv_test.cpp:7: Failure' 'Expected equality:' '  1.5' '  2.5' \
    '[  FAILED  ] Conv.Forward/cudnn (3 ms)' '[  PASSED  ] 1 test.'
  exit 1
fi
if told "hang-$name"; then echo '[ RUN      ] A.Hangs'; hang; fi
echo '[  PASSED  ] 1 test.'
END
program programs/duplex <<'END'
echo "duplex $*" >>"$WORK/done"
while [ $# -gt 0 ]; do
  case $1 in
    --net) net=$2 ;;
    --batch) batch=$2 ;;
    --precision) precision=$2 ;;
    --layout) layout=$2 ;;
    --layers) layers=1 ;;
    --cuda-graphs) graphs=1 ;;
  esac
  shift
done
told "hang-$net" && hang
told "no-$precision" && { echo 'cuda: it has no engine' >&2; exit 1; }
if [ "${layers:-}" ]; then
  told hang-layers-of-nets && hang
  told no-layers && { echo 'cuda: it has no clock' >&2; exit 1; }
  echo "conv1 of $net in $layout takes 1 ms"
  exit
fi
[ "${graphs:-}" ] && told no-graphs && echo 'cuda: recording: not permitted; operations are asked for one by one, without a CUDA graph' >&2
told "no-$net" && { echo 'cuda: it is broken' >&2; exit 1; }
told no-nhwc && [ "$layout" != nchw ] && { echo 'cuda: no engine for conv1' >&2; exit 1; }
told slow && [ "$layout" = measured ] && hang
[ "$layout" = measured ] && found='layout NHWC: a step takes 10 ms in NHWC, 12 ms in NCHW'
printf '%s\t%s\t1200.000\t1100.000\t1300.000\t5.0\t0.05\t0.0\t2097152000\t%s\n' "$net" "$batch" "${found:-}"
END
program bin/python <<'END'
shift 2
case "$1" in
  -c) told no-torch && { echo "ModuleNotFoundError: No module named 'torch'"; exit 1; }
      echo '2.11.0+cu130 cuDNN 91900' ;;
  */gpu_torch_step.py)
    echo "torch $*" >>"$WORK/done"
    net=$2 precision=$3
    for cell in "${@:5}"; do
      way=${cell#*:} speed=1000
      told no-compile && [ "$way" = compile ] && { echo "$cell: RuntimeError: no Python.h" >&2; exit 1; }
      [ "$way" = eager ] && speed=900
      [ "$way" = compile ] && speed=1250
      printf '%s\t%s\t%s\t%s\t%s\t1\t2\t3145728000\t4194304000\n' "$net" "$precision" "${cell%:*}" "$way" "$speed"
      if told hang-torch; then hang; fi
    done ;;
esac
END

out=$work/out
export PATH=$work/bin:$PATH BUILD=$work/build PYTHON=python NETWORKS='squeezenet vgg16e' PRECISIONS='float32' BATCHES='64 16'
unset RESUME COMMIT STEPS SECONDS_LEFT ITEM_SECONDS
page=$out/gpu-nvidia-h100-80gb-hbm3.md

fail() { echo "$what: $*"; tail -n 5 "$work/log"; [ ! -e "$page" ] || cat "$page"; exit 1; }
# check WHAT CODE TOLD...: makes a run in which the stand-ins are told these words, and fails unless it ends with this
# code. More settings come from the environment.
check() {
  local code
  what=$1
  rm -rf "$work"/{told,done,hangs}
  mkdir "$work/told"
  : >"$work/done"
  for word in "${@:3}"; do : >"$work/told/$word"; done
  bash tools/gpu_check.sh "$out" >"$work/log" 2>&1
  code=$?
  [ $code = "$2" ] || fail "exit code $code instead of $2"
}
says() { grep -qF -- "$1" "$page" || fail "the page does not say '$1'"; }
silent() { ! grep -qF -- "$1" "$page" || fail "the page says '$1'"; }
was_done() { [ "$(grep -ce "$1" "$work/done")" = "$2" ] || fail "not $2 times: $1; but: $(cat "$work/done")"; }

check 'all works' 0
says 'release 13.0'
says '- tools: 1 passed'
says '- smoke: LeNet trains in float32, tf32 and bf16, in NCHW and NHWC'
says '- memcheck, LeNet, 4 steps: ERROR SUMMARY: 0 errors'
says '- racecheck, LeNet, 4 steps: RACECHECK SUMMARY: 0 hazards displayed'
says '- initcheck, LeNet, 4 steps: ERROR SUMMARY: 0 errors'
says 'conv1 of vgg16e in nhwc takes 1 ms'
says '| squeezenet | 64 | float32 | 1200 (1100..1300) | NHWC | 900 | 1000 | 1.20 | 1250 | 0.96 |'
says '| squeezenet | 16 | float32 | 1200 (1100..1300) | NHWC | - | 1000 | 1.20† | 1250 | 0.96 |'
says '| vgg16e | float32 | 1.20 yes | 0.96 **no** | 0.67 yes | 0.67 yes |'
says '| vgg16e | 16 | float32 | 2000 | - | - | 3000 | 4000 | 3000 | 4000 |'
silent 'went wrong'
silent 'figures are not measured'
[ "$(find "$out" -type f | wc -l)" -le 6 ] || fail "too many files: $(ls "$out")"
was_done 'make WERROR' 1
was_done 'gpu_torch_step.py squeezenet float32 20 64:eager 64:channels_last$' 1
was_done 'gpu_torch_step.py vgg16e float32 20 16:channels_last$' 1
was_done '--batch 16 --layout nhwc .*--row' 4  # The layout is measured at the first batch only.
was_done '--cuda-graphs' 2
says '| squeezenet | 16 | float32 | 1200 | 1200 (1100..1300) | 1.00 |'
was_done '--net lenet .*--row' 6

check 'a graph cannot be made' 0 no-graphs
says '== squeezenet float32 16 duplex, CUDA graphs'
says 'without a CUDA graph'
silent '## CUDA graphs'
rm -rf "$out"
check 'all works again' 0

cp -r "$out" "$work/brought"
rm -rf "$out"
RESUME=$work/brought check 'nothing is left to do' 0
was_done 'duplex\|torch\|suite' 0
says '| vgg16e | float32 | 1.20 yes | 0.96 **no** | 0.67 yes | 0.67 yes |'

sed -i 's/^\(duplex\tvgg16e\tfloat32\t16\t.*\t\)[0-9a-f]\{12\}\t1\t$/\1older\t1\t/' "$out/rows.txt"
RESUME=1 check 'a row of other sources' 0
was_done 'duplex' 1
says '1.20†*'

export NETWORKS=squeezenet BATCHES=64
check 'float32 does not train' 1 no-float32 no-torch
says '- smoke: LeNet does not train in float32 in NCHW, float32 in NHWC'
check 'a precision does not train' 0 no-tf32
says '- smoke: LeNet does not train in tf32 in NCHW, tf32 in NHWC'
says 'cuda: it has no engine'
check 'a kernel races' 1 races-racecheck
says '- racecheck, LeNet: exit code 9'
says 'Race reported between'
says '- initcheck, LeNet, 4 steps: ERROR SUMMARY: 0 errors'
check 'a library reads what nobody wrote' 0 reads-initcheck
says '- initcheck, LeNet: 1 reads of values that nobody wrote, all in kernels of libraries'
check 'we read what nobody wrote' 1 reads-initcheck ours
says '- initcheck, LeNet: exit code 9'
SECONDS_LEFT=40 ITEM_SECONDS=5 check 'a sanitizer hangs' 0 hang-memcheck
says '- memcheck, LeNet: stopped after its time'
RESUME=1 check 'a sanitizer hung' 0
was_done 'sanitizer' 1
SECONDS_LEFT=40 ITEM_SECONDS=5 check 'smoke hangs' 0 hang-lenet
says '- smoke: stopped after its time, in float32 in NCHW'
RESUME=1 check 'smoke hung' 0
was_done '--net lenet .*--row' 6
says '- smoke: LeNet trains in float32, tf32 and bf16, in NCHW and NHWC'
check 'layers cannot be timed' 0 no-layers
says 'cuda: it has no clock'
silent 'Where the time goes'

check 'it does not build' 1 no-build
says 'error: no such thing'
says 'line 22'
silent 'line 20'

check 'it warns' 0 warns
was_done '^make' 2
says 'b.cpp:4: error: unused'
RESUME=1 check 'it warned' 0 warns
was_done '^make' 1
says 'b.cpp:4: error: unused'

ITEM_SECONDS=1 check 'a suite hangs' 1 hang-layers
says '- layers: 1 passed, then stopped after its time, exit code 124'
says 'it ended in A.Hangs'
RESUME=1 check 'a suite hung' 0
was_done 'suite layers' 1
was_done 'suite' 1
says '- layers: 1 passed'
silent 'Hangs'

check 'a test fails' 1 fail-models
says 'Conv.Forward/cudnn'
says '    2.5'
RESUME=1 check 'a test failed' 1
was_done 'suite' 0
says '    2.5'

NETWORKS='squeezenet vgg16e' check 'torch is missing, a row fails' 0 no-torch no-vgg16e
says 'PyTorch is not installed here'
says '| squeezenet | 64 | float32 | 1200 (1100..1300) | NHWC | - | - | - | - | - |'
says '== vgg16e float32 64 duplex, layout measured'
says 'cuda: it is broken'
says 'exit code 1'
silent '== squeezenet'
says '1 of 2 figures are not measured'
check 'every row fails' 1 no-torch no-squeezenet

check 'a layout has no engine' 0 no-nhwc
says '| NCHW (layout measured failed) |'
says 'cuda: no engine for conv1'

NETWORKS='squeezenet vgg16e resnet34' check 'torch.compile does not work here' 0 no-compile
was_done '64:compile' 2
says '== vgg16e float32 64:compile PyTorch'
says '64:compile: RuntimeError: no Python.h'

ITEM_SECONDS=1 check 'measuring takes long' 0 slow
says '| NHWC (no time to measure both) |'
says 'exit code 124, stopped after 1 s'

check 'no GPU' 0 no-gpu
page=$out/gpu.md
says 'this machine has none'
page=$out/gpu-nvidia-h100-80gb-hbm3.md

SECONDS_LEFT=0 check 'no time' 1
says '- core: not run, no time was left'
says '3 of 3 figures are not measured'

# A run that is killed in the middle leaves what it measured, and the next run keeps that.
what='killed'
rm -rf "$work"/{told,done,hangs,out}
mkdir "$work/told"
: >"$work/told/hang-torch"
bash tools/gpu_check.sh "$out" >"$work/log" 2>&1 &
run=$!
disown
for _ in $(seq 300); do [ -e "$work/hangs" ] && grep -qs 'squeezenet.* 900 ' "$page" && break; sleep 0.1; done
kill -9 $run "$(cat "$work/hangs")"
says '| squeezenet | 64 | float32 | 1200 (1100..1300) | NHWC | 900 | - | 1.33† | - | - |'
RESUME=1 check 'it goes on' 0
was_done 'suite' 0
was_done 'gpu_torch_step.py squeezenet float32 20 64:channels_last$' 1
says '| squeezenet | 64 | float32 | 1200 (1100..1300) | NHWC | 900 | 1000 | 1.20* | 1250 | 0.96* |'

# A run that is stopped ends at once with all that it started, and leaves what it has found; Ctrl-C goes to the whole group.
# stopped SIGNAL CODE WHERE: stops a run where something hangs.
stopped() {
  local code hangs
  what="stopped by SIG$1 where $3 hangs"
  rm -rf "$work"/{told,done,hangs,out}
  mkdir "$work/told"
  : >"$work/told/hang-$3"
  set -m  # Else SIGINT is ignored, in the background.
  bash tools/gpu_check.sh "$out" >"$work/log" 2>&1 &
  run=$!
  set +m
  for _ in $(seq 300); do [ -s "$work/hangs" ] && break; sleep 0.1; done
  hangs=$(cat "$work/hangs")
  if [ "$1" = INT ]; then kill -INT -- -$run; else kill "-$1" $run; fi
  wait $run
  code=$?
  [ $code = "$2" ] || fail "exit code $code instead of $2"
  for _ in $(seq 50); do grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$hangs/status" || break; sleep 0.1; done
  ! grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$hangs/status" || fail "$hangs goes on"
}
stopped INT 130 build
says 'It was stopped while it built.'
stopped TERM 143 models
says '- layers: 1 passed'
silent '- models:'
stopped INT 130 layers-of-nets
says '| squeezenet | 64 | float32 | 1200 (1100..1300) | NHWC | 900 | 1000 | 1.20 | - | - |'
stopped HUP 129 torch
says '| squeezenet | 64 | float32 | 1200 (1100..1300) | NHWC | 900 | - | 1.33† | - | - |'
silent 'went wrong'
RESUME=1 check 'it goes on after it was stopped' 0
was_done 'suite' 0
was_done 'gpu_torch_step.py squeezenet float32 20 64:channels_last$' 1
