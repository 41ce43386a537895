#!/bin/bash
# Tests that make/probe.sh declines a oneDNN that cannot be used, and says why and which it wants, and that the build goes
# without; and, where there is CUDA, that kernels are compiled for the GPUs of the machine.
set -eu
cd "$(dirname "$0")/.."
cxx=${CXX:-g++}
# Like make/probe.sh, take the compiler that was unpacked without root, if there is one.
[ "$cxx" != g++ ] || [ ! -x .deps/bin/g++ ] || cxx=$PWD/.deps/bin/g++
command -v "${cxx%% *}" > /dev/null || { echo "skipped: needs $cxx"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CUDA_ARCH
mkdir -p "$work/include/oneapi/dnnl" "$work/lib"
# Nothing here is about these, and the compiler takes seconds for the true ones, each time.
mkdir -p "$work/include"/{CLI,nlohmann}
touch "$work/include/CLI/CLI.hpp"
echo 'namespace nlohmann { struct ordered_json {}; }' > "$work/include/nlohmann/json.hpp"
export CPATH=$work/include${CPATH:+:$CPATH}
echo 'int nothing;' | $cxx -shared -fPIC -x c++ - -o "$work/lib/libdnnl.so"

# probe VERSION RUNTIME SETTING: runs the probe on headers that name this version and runtime, and hold no more.
probe() {
  printf '#define DNNL_VERSION_MAJOR %s\n#define DNNL_VERSION_MINOR %s\n#define DNNL_VERSION_PATCH %s\n' ${1//./ } \
    > "$work/include/oneapi/dnnl/dnnl_version.h"
  printf '#pragma once\n#include "oneapi/dnnl/dnnl_version.h"\n#define DNNL_CPU_RUNTIME %s\n' "$2" > "$work/include/dnnl.hpp"
  LIBRARY_PATH=$work/lib${LIBRARY_PATH:+:$LIBRARY_PATH} ONEDNN=$3 CUDA=0 \
    bash make/probe.sh "$work/out"
}
# says TEXT: fails unless the text stands in what a person reads.
says() { grep -qF -e "$1" "$work/out/config.txt" || { echo "not said: $1"; cat "$work/out/config.txt"; exit 1; }; }
# config NAME VALUE: fails unless the make variable has this value.
config() { grep -qx "$1 := \?$2" "$work/out/config.mk" || { echo "$1 is not '$2'"; grep "$1" "$work/out/config.mk"; exit 1; }; }

# A compiler whose preprocessor leaves an empty line where nothing is left, as clang's does, is not taken for an old g++.
printf '#!/bin/bash\n[[ " $* " != *" -E "* ]] || echo\nexec %s "$@"\n' "$cxx" > "$work/cxx"
chmod +x "$work/cxx"
CXX=$work/cxx ONEDNN=0 CUDA=0 bash make/probe.sh "$work/out"
says 'found    compiler'

probe 1.8.0 2 auto
says 'without  oneDNN      1.8.0 is too old: 2.0 or newer is wanted; training runs on the slow reference loops'
config CONFIG_ONEDNN ''
missing=$(sed -n 's/^CONFIG_MISSING := //p' "$work/out/config.mk")

probe 3.13.0 512 auto
says 'without  oneDNN      3.13.0 computes by SYCL: one for OpenMP is wanted'
config CONFIG_ONEDNN ''

probe 9.0.0 2 auto
says 'without  oneDNN      9.0.0 does not fit ('
config CONFIG_ONEDNN ''
config CONFIG_MISSING "$missing"  # The build goes on.

probe 9.0.0 2 1
says 'oneDNN, which ONEDNN=1 asks for; 9.0.0 does not fit ('
config CONFIG_MISSING "$((missing + 1))"

# gpus CAPABILITY...: runs the probe on a machine with such GPUs.
gpus() {
  printf '#!/bin/sh\nprintf "%%s\\n" %s\n' "$*" > "$work/nvidia-smi"
  chmod +x "$work/nvidia-smi"
  PATH=$work:$PATH ONEDNN=0 CUDA=auto bash make/probe.sh "$work/out"
}
# compiles FLAGS: fails unless kernels are compiled with these architectures.
compiles() { grep -q -e "^CONFIG_NVCC := .*/nvcc -std=c++17\( -ccbin [^ ]*\)\? $1\$" "$work/out/config.mk" || { echo "not compiled: $1"; grep NVCC "$work/out/config.mk"; exit 1; }; }

gpus 8.0
if grep -q '^CONFIG_CUDA := 1' "$work/out/config.mk"; then
  a=-gencode=arch=compute
  compiles "${a}_80,code=sm_80 ${a}_80,code=compute_80"
  # From here on nvcc says what it would do, in a hundredth of the time.
  nvcc=$(sed -n 's/^CONFIG_NVCC := \([^ ]*\).*/\1/p' "$work/out/config.mk")
  mkdir -p "$work/cuda/bin"
  printf '#!/bin/sh\nexec %s --dryrun "$@" 2>&1\n' "$nvcc" > "$work/cuda/bin/nvcc"
  chmod +x "$work/cuda/bin/nvcc"
  export CUDA_HOME=$work/cuda
  gpus 9.0 8.0 9.0
  compiles "${a}_80,code=sm_80 ${a}_90,code=sm_90 ${a}_90,code=compute_90"
  CUDA_ARCH=80 gpus 9.0  # As told, whatever is there.
  compiles "${a}_80,code=sm_80 ${a}_80,code=compute_80"
  gpus 99.0  # It is newer than the compiler, and the driver has to translate.
  compiles "${a}_[0-9]*,code=compute_[0-9]*"
  gpus 8.1 8.0  # An unknown one between those that it knows has the code of the next older one translated.
  compiles "${a}_80,code=sm_80 ${a}_80,code=compute_80"
  # takes HOST: makes an nvcc that takes this host compiler alone; '': its own choice.
  takes() {
    printf '#!/bin/sh\nhost=\ncase " $* " in *" -ccbin "*) host=${*#*-ccbin } host=${host%%%% *} ;; esac\n' > "$work/cuda/bin/nvcc"
    printf '[ "$host" = "%s" ] || { echo "error: unsupported GNU version"; exit 1; }\nexec %s --dryrun "$@" 2>&1\n' "$1" "$nvcc" >> "$work/cuda/bin/nvcc"
  }
  takes ''
  gpus 8.0
  says "; its nvcc takes another compiler of its choice instead of $cxx"
  config CONFIG_NVCC "$work/cuda/bin/nvcc -std=c++17 ${a}_80,code=sm_80 ${a}_80,code=compute_80"
  printf '#!/bin/sh\nexec %s "$@"\n' "$cxx" > "$work/g++-9"
  chmod +x "$work/g++-9"
  takes g++-9
  gpus 8.0
  says "; its nvcc takes g++-9 instead of $cxx"
  compiles "${a}_80,code=sm_80 ${a}_80,code=compute_80"
  takes none
  gpus 8.0
  says 'there is no compiler that works (error: unsupported GNU version)'
  config CONFIG_CUDA ''
  takes ''
  gpus 3.0
  says "there is no compiler for this machine's GPU, whose compute capability is 3.0 (CUDA 11 has 3.5 to"
  config CONFIG_CUDA ''
  gpus 3.0 8.0
  says "; it does not compile for this machine's GPU of compute capability 3.0"
  compiles "${a}_80,code=sm_80 ${a}_80,code=compute_80"
fi
