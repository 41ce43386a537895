#!/bin/bash
# Tests that the program finds the libraries that its GPU library needs where the loader does not search: a library takes
# the place of ours, and needs another one, which lies beside CUDA or in a Python package.
# Usage: DUPLEX=bin/duplex tests/cuda_libraries.sh
set -eu
cd "$(dirname "$0")/.."
duplex=${DUPLEX:-bin/duplex} cxx=${CXX:-g++}
[ "$cxx" != g++ ] || [ ! -x .deps/bin/g++ ] || cxx=$PWD/.deps/bin/g++
command -v "${cxx%% *}" >/dev/null || { echo "skipped: needs $cxx"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/apart"
# compile NAME TEXT FLAG...: makes a library.
compile() { echo "$2" | $cxx -shared -fPIC -x c++ - -x none "${@:3}" -Wl,-soname,"$1" -o "$work/apart/$1"; }
compile libdeep.so.7 'int deep() { return 1; }'
compile libnear.so.9 'int deep(); int near() { return deep(); }' -Wl,--no-as-needed "$work/apart/libdeep.so.7"
compile libours.so 'int near(); int ours() { return near(); }' -Wl,--no-as-needed "$work/apart/libnear.so.9" -Wl,-rpath-link,"$work/apart"
mv "$work/apart/libours.so" "$work"

# says TEXT [NAME=VALUE...]: fails unless the program says the text with these variables.
says() {
  local said
  said=$(env -u CUDA_PATH -u VIRTUAL_ENV -u CONDA_PREFIX CUDA_HOME=/nowhere HOME=/nowhere DUPLEX_CUDNN="$work/libours.so" "${@:2}" \
    "$duplex" bench --net lenet --steps 1 --device cuda 2>&1) && { echo "it trained: $said"; exit 1; }
  case $said in *"$1"*) ;; *) echo "not said: $1"; echo "$said"; exit 1 ;; esac
}
missing='cannot open shared object file: No such file or directory; install it, or name the folder that has it in LD_LIBRARY_PATH or CUDA_HOME'
found='undefined symbol: duplex_make_cudnn_device'  # The loader has all that it needs.

says "libnear.so.9: $missing"
says "$found" LD_LIBRARY_PATH="$work/apart"

mkdir -p "$work/cuda/lib64"
cp "$work/apart/libnear.so.9" "$work/cuda/lib64"
says "libdeep.so.7: $missing" CUDA_HOME="$work/cuda"
packages=.local/lib/python3.11/site-packages/nvidia
mkdir -p "$work/$packages/cu13/lib" "$work/$packages/cudnn/lib"
cp "$work/apart/libdeep.so.7" "$work/$packages/cu13/lib"
says "$found" CUDA_HOME="$work/cuda" HOME="$work"
cp "$work/apart/libnear.so.9" "$work/$packages/cudnn/lib"
says "$found" HOME="$work"
says "$found" VIRTUAL_ENV="$work/.local"
echo not a library >"$work/$packages/cudnn/lib/libnear.so.9"
says "libnear.so.9" HOME="$work"
