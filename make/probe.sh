#!/bin/bash
# Finds out what this machine has, and writes it as make variables to OUT/config.mk and for people to
# OUT/config.txt, and the list of headers that it saw to OUT/headers.txt (make/settings.sh). Settings come from the
# environment: CXX, ONEDNN and CUDA (auto, 0, 1), CUDA_HOME, CUDA_ARCH (compute capabilities like 90, in place of those of
# the machine's GPUs), PYTHON (whose packages may hold CUDA).
# Usage: make/probe.sh OUT
set -u
cd "$(dirname "$0")/.." || exit 1
out=$1
mkdir -p "$out"
work=$(mktemp -d "$out/probe.XXXXXX")
trap 'rm -rf "$work"' EXIT

. make/distribution.sh

onednn=${ONEDNN:-auto}
cuda=${CUDA:-auto}
cxx=${CXX:-g++}
deps=$PWD/.deps
cppflags=
ldflags=
if [ -d "$deps/usr" ]; then
  triplet=$(ls -d "$deps"/usr/lib/*-linux-gnu* 2>/dev/null | head -n1)
  triplet=${triplet##*/}
  # The C library's headers have to come after those of C++, which lead to them by include_next.
  include=-isystem
  [ -e "$deps/usr/include/stdlib.h" ] && include=-idirafter
  for folder in usr/include ${triplet:+usr/include/$triplet}; do
    [ -d "$deps/$folder" ] && cppflags+=" $include $deps/$folder"
  done
  # RPATH rather than RUNPATH: it also leads libraries to the libraries that they need.
  ldflags=" -Wl,--disable-new-dtags"
  for folder in ${triplet:+usr/lib/$triplet} usr/lib64 usr/lib; do
    [ -d "$deps/$folder" ] && ldflags+=" -L$deps/$folder -Wl,-rpath,$deps/$folder"
  done
fi
if [ "$cxx" = g++ ] && [ -x "$deps/bin/g++" ]; then
  cxx=$deps/bin/g++
elif [ "$cxx" = g++ ] && ! gxx_fits g++ && toolset=$(toolset_of "$machine"); then
  # The assembler and the linker have to be those of the toolset, too; `scl enable' does the same.
  folder=$(basename "$(dirname "$toolset")")
  mkdir -p "$out/$folder"
  cxx=$(cd "$out/$folder" && pwd)/g++
  printf '#!/bin/bash\nexport PATH=%q:$PATH\nexec %q "$@"\n' "$toolset/usr/bin" "$toolset/usr/bin/g++" >"$cxx"
  chmod +x "$cxx"
fi

# ---- Questions to the compiler.
works=  # Set once it has compiled a program.

compile() { $cxx -std=c++17 $cppflags -x c++ "$@"; }

# has HEADER [LIBRARY-FLAG...]: succeeds if the header can be included, and an empty program be linked with the flags.
has() {
  local header=$1
  shift
  if [ ! "$works" ]; then  # Without a compiler, look where one would.
    set -- {,/usr/local,"$deps"}/usr/include/{,*/}"$header" "/usr/local/include/$header"
    ls -d "$@" 2>/dev/null | grep -q .
    return
  fi
  printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$header" | compile -E - >/dev/null 2>&1 || return
  [ $# = 0 ] || echo 'int main() {}' | compile - -x none $ldflags "$@" -o "$work/a.out" 2>/dev/null
}

# version HEADER MACRO...: prints the macros' values, joined by full stops, or nothing if one is not defined.
version() {
  local header=$1 name value values=
  [ "$works" ] || return
  shift
  for name; do
    value=$(printf '#include <%s>\nduplex_probe %s\n' "$header" "$name" | compile -E -P - 2>/dev/null |
      sed -n 's/^duplex_probe *//p' | tr -d '" ' | tail -n1)
    [ "$value" = "$name" ] && return
    values+=${values:+.}$value
  done
  echo "$values"
}

# ---- The answers. `found' has entries "what|version", `without' has "what|what it costs to go without|Debian
# package|Fedora package", and `missing' has "what|Debian package|Fedora package".
found=() without=() missing=()

gxx_package=gcc-c++
[ "$(enterprise_linux)" != 8 ] || gxx_package=gcc-toolset-14-gcc-c++
if ! command -v "${cxx%% *}" >/dev/null 2>&1; then
  missing+=("a C++17 compiler ($cxx)|g++|$gxx_package")
elif old=$(printf '#if defined __GNUC__ && !defined __clang__ && __GNUC__ < %s\n__GNUC__\n#endif\n' $least_gxx |
  compile -E -P - 2>/dev/null | grep -x '[0-9][0-9]*'); then
  missing+=("g++ from $least_gxx on ($cxx is $old)|g++|$gxx_package")
elif ! printf '#include <cstdlib>\nstatic_assert(__cplusplus >= 201703L, "");\nint main() {}\n' |
  compile - -o "$work/a.out" >"$work/errors" 2>&1; then
  missing+=("a C++17 compiler that works ($cxx: $(grep -m1 error "$work/errors"))|g++|$gxx_package")
else
  works=1
  found+=("compiler|$($cxx --version | head -n1)")
fi

openmp=
if [ "$works" ] && printf '#include <omp.h>\nint main() { return omp_get_max_threads() == 0; }\n' |
  compile -fopenmp - $ldflags -o "$work/a.out" 2>/dev/null; then
  openmp=-fopenmp
  found+=("OpenMP|")
elif [ "$works" ]; then
  without+=("OpenMP|the reference operations run on one thread|libomp-dev|libomp-devel")
fi

if has stb/stb_image.h; then found+=("stb|"); else missing+=("stb|libstb-dev|stb_image-devel"); fi
carried="headers alone, \`make carry' on a newer system brings them"
# first_error: prints the first error of the compiler, cut to fit into a line.
first_error() { grep -m1 -i error "$work/errors" | sed 's/.*error: //' | cut -c 1-100 | tr '|' '/'; }

if has CLI/CLI.hpp; then
  cli11=$(version CLI/Version.hpp CLI11_VERSION)
  if [ "$works" ] && ! compile -I. -fsyntax-only tools/flags/command_line.cpp 2>"$work/errors"; then
    missing+=("CLI11 from 2.1 on (with ${cli11:-an unknown version} it does not compile: $(first_error); $carried)||")
  else
    found+=("CLI11|$cli11")
  fi
else
  missing+=("CLI11 (2.1 or newer; $carried)|libcli11-dev|cli11-devel")
fi
if has nlohmann/json.hpp; then
  json=$(version nlohmann/json.hpp NLOHMANN_JSON_VERSION_{MAJOR,MINOR,PATCH})
  if [ "$works" ] && ! printf '#include <nlohmann/json.hpp>\nnlohmann::ordered_json json;\n' | compile -fsyntax-only - 2>/dev/null; then
    missing+=("json from 3.9 on (this is ${json:-an unknown version}; $carried)||")
  else
    found+=("json|$json")
  fi
else
  missing+=("json|nlohmann-json3-dev|json-devel")
fi
if has openssl/hmac.h -lcrypto; then
  found+=("OpenSSL|$(version openssl/opensslv.h OPENSSL_VERSION_STR)")
else
  missing+=("OpenSSL's libcrypto|libssl-dev|openssl-devel")
fi

if has zlib.h -lz; then
  found+=("zlib|$(version zlib.h ZLIB_VER_{MAJOR,MINOR,REVISION})")
else
  missing+=("zlib|zlib1g-dev|zlib-devel")
fi

gtest=
if has gtest/gtest.h -lgtest_main -lgtest -pthread; then
  if [ "$works" ] && ! printf '#include <gtest/gtest.h>\n#ifndef INSTANTIATE_TEST_SUITE_P\n#error\n#endif\n' | compile -E - >/dev/null 2>&1; then
    without+=("GoogleTest|no tests: 1.10 or newer is wanted||")
  else
    gtest=1
    found+=("GoogleTest|")
  fi
else
  without+=("GoogleTest|no tests|libgtest-dev|gtest-devel")
fi

# unfit VERSION: prints why core/onednn cannot be built with the oneDNN that is there, or nothing if it can.
unfit() {
  local version=$1
  if [ ! "$version" ] || [ "${version%%.*}" -lt 2 ]; then
    echo "$version is too old: 2.0 or newer is wanted"
  elif ! printf '%s\n' '#include <dnnl.hpp>' '#if DNNL_CPU_RUNTIME == 512' '#error' '#endif' |
    compile -E - >/dev/null 2>&1; then
    echo "$version computes by SYCL: one for OpenMP is wanted"
  elif ! compile $openmp -I. make/onednn_probe.cpp -x none $ldflags -ldnnl -o "$work/a.out" 2>"$work/errors"; then
    echo "$version does not fit ($(first_error)): versions 2.0 to 3.13 have been tried"
  fi
}

has_onednn= onednn_unfit=
slow="training runs on the slow reference loops"
if [ "$onednn" != 0 ] && has dnnl.hpp -ldnnl; then
  has_onednn=1
  onednn_version=$(version oneapi/dnnl/dnnl_version.h DNNL_VERSION_{MAJOR,MINOR,PATCH})
  [ ! "$works" ] || onednn_unfit=$(unfit "$onednn_version")
  [ ! "$onednn_unfit" ] || has_onednn=
fi
if [ "$onednn" = 0 ]; then
  without+=("oneDNN|turned off by ONEDNN=0: $slow||")
elif [ "$has_onednn" ]; then
  found+=("oneDNN|$onednn_version")
elif [ "$onednn" = 1 ]; then
  missing+=("oneDNN, which ONEDNN=1 asks for${onednn_unfit:+; $onednn_unfit}|libdnnl-dev|onednn-devel")
elif [ "$onednn_unfit" ]; then
  without+=("oneDNN|$onednn_unfit; $slow||")
else
  without+=("oneDNN|$slow|libdnnl-dev|onednn-devel")
fi

# ---- CUDA: compiler, headers and libraries may lie in different places, Python's packages among them.

# cuda_roots: prints the folders that may have some of it, one a line, the user's choice first.
cuda_roots() {
  printf '%s\n' "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda
  command -v nvcc >/dev/null && dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")"
  "${PYTHON:-python3}" - 2>/dev/null <<'PYTHON'
import glob, site, sys, sysconfig
for folder in dict.fromkeys([sysconfig.get_path("purelib"), *site.getsitepackages(), site.getusersitepackages()]):
    print(*sorted(glob.glob(folder + "/nvidia/*/"), reverse=True), sep="\n")
print(sys.prefix)
PYTHON
}

# in_roots FOLDER... -- NAME...: prints the first file of these names, in the order of the roots, then of the names.
in_roots() {
  local folders=() name root folder found
  while [ "$1" != -- ]; do folders+=("$1") && shift; done
  shift
  for root in "${roots[@]}"; do
    for name; do
      for folder in "${folders[@]}"; do
        found=$(compgen -G "$root/$folder/$name" | sort -V | tail -n1)
        [ "$found" ] && echo "$found" && return
      done
    done
  done
  return 1
}

# architectures_of GPU...: sets `architectures`, nvcc's flags for these GPUs (compute capabilities like 90). The newest that
# nvcc knows also gets code that drivers translate for later ones (PTX); for a GPU that it does not know, there is that of
# the next older one. GPUs that are older than all that it knows go into cuda_note, and into cuda_lacks if there are no
# others. Without a GPU here, the flags are for all that nvcc knows.
architectures_of() {
  local gpu base listed='' real='' virtual='' old=''
  architectures='' cuda_note=''
  if [ $# = 0 ]; then
    architectures=-arch=all-major
    kernels "$architectures" || architectures=''  # An old nvcc does not know all-major, but has a default.
    return
  fi
  listed=$($nvcc --list-gpu-arch 2>/dev/null | sed -n 's/^compute_\([0-9]*\)$/\1/p' | sort -n)
  for gpu; do
    if kernels "-gencode=arch=compute_$gpu,code=sm_$gpu"; then
      real+=" $gpu"
    else
      base=$(awk -v gpu="$gpu" '$1 + 0 <= gpu + 0 { base = $1 } END { print base }' <<<"$listed")
      if [ "$base" ]; then virtual+=" $base"; else old+="${old:+, }${gpu%?}.${gpu: -1}"; fi
    fi
  done
  cuda_note=${old:+"; it does not compile for this machine's GPU of compute capability $old"}
  if [ ! "$real$virtual" ]; then
    cuda_lacks="compiler for this machine's GPU, whose compute capability is $old (CUDA 11 has 3.5 to 9.0, CUDA 12 has 5.0 to 12.0)"
    return
  fi
  for gpu in $real; do architectures+=" -gencode=arch=compute_$gpu,code=sm_$gpu"; done
  for gpu in $(printf '%s\n' $virtual ${real##* } | sort -nu); do architectures+=" -gencode=arch=compute_$gpu,code=compute_$gpu"; done
  architectures=${architectures# }
}

# take_host_compiler: adds the compiler for what is not a kernel to `nvcc`: ours, unless nvcc is too old for it, else nvcc's
# own choice, or an older g++ of this machine, which goes into host_note. Where none works, cuda_lacks says so.
take_host_compiler() {
  local alone=$nvcc host
  for host in "${cxx%% *}" '' g++-{14,13,12,11,10,9}; do
    [ ! "$host" ] || command -v "$host" >/dev/null || continue
    nvcc=$alone${host:+ -ccbin $host}
    kernels '' || continue
    [ "$host" = "${cxx%% *}" ] || host_note="; its nvcc takes ${host:-another compiler of its choice} instead of $cxx"
    return
  done
  nvcc="$alone -ccbin ${cxx%% *}"
  kernels '' || cuda_lacks="compiler that works ($(grep -m1 -i error "$work/errors"))"
}

has_cuda= host_note= nvcc= cuda_cppflags= cuda_ldflags= cuda_lacks=
if [ "$cuda" != 0 ] && [ "$works" ]; then
  mapfile -t roots < <(cuda_roots | grep . ; echo /usr)
  nvcc=$(in_roots bin -- nvcc) || cuda_lacks="CUDA's compiler (nvcc)"
  declare -A seen=()
  for header in cuda_runtime.h cublas_v2.h cudnn.h; do
    if path=$(in_roots include targets/x86_64-linux/include include/x86_64-linux-gnu -- $header); then
      folder=$(dirname "$path")
      [ "$folder" = /usr/include ] || [ "${seen[$folder]:-}" ] || cuda_cppflags+=" -isystem $folder"
      seen[$folder]=1
    else
      cuda_lacks+=${cuda_lacks:+, }$header
    fi
  done
  for library in cudart cublas cublasLt cudnn; do
    names=("lib$library.so" "lib$library.so.*")
    [ $library = cudart ] && names=(libcudart_static.a "${names[@]}")
    if path=$(in_roots lib64 lib targets/x86_64-linux/lib lib/x86_64-linux-gnu -- "${names[@]}"); then
      cuda_ldflags+=" $path"
      folder=$(dirname "$path")
      [[ $path = *.a ]] || [ "${seen[$folder]:-}" ] || cuda_ldflags+=" -Wl,-rpath,$folder"
      [[ $path = *.a ]] || seen[$folder]=1
    else
      cuda_lacks+=${cuda_lacks:+, }lib$library
    fi
  done
  cuda_ldflags+=" -ldl -lrt"
  if [ ! "$cuda_lacks" ] && ! echo '#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
static_assert(CUDART_VERSION >= 11000 && CUDNN_VERSION >= 8300, "too old");
#include <cstdio>
int main(int n, char**) {
  const auto major = [](size_t version) { return version / (version < 90000 ? 1000 : 10000); };
  const bool fits = cudnnGetVersion() >= CUDNN_VERSION && major(cudnnGetVersion()) == major(CUDNN_VERSION) &&
                    cudnnGetCudartVersion() / 1000 == CUDART_VERSION / 1000;
  std::puts(n > 99 && cudaGetLastError() != cudaSuccess ? "" : fits ? "fits" : "differs");
}' |
    compile - $cuda_cppflags -x none $ldflags $cuda_ldflags -pthread -o "$work/a.out" 2>"$work/errors"; then
    cuda_lacks="version from 11 on, with cuDNN from 8.3 on, that can be linked ($(grep -m1 -i error "$work/errors"))"
  elif [ ! "$cuda_lacks" ] && [ "$("$work/a.out" 2>&1)" != fits ]; then
    cuda_lacks="cuDNN for this CUDA, whose library is of its headers' version or a later one ($cuda_ldflags)"
  fi
  if [ ! "$cuda_lacks" ]; then
    nvcc+=' -std=c++17'
    echo '__global__ void nothing() {} int main() { nothing<<<1, 1>>>(); }' >"$work/a.cu"
    kernels() { $nvcc $1 -c "$work/a.cu" -o "$work/a.o" >"$work/errors" 2>&1; }
    take_host_compiler
    gpus=${CUDA_ARCH:-$({ nvidia-smi --query-gpu=compute_cap --format=csv,noheader || true; } 2>/dev/null | tr -d '. ' | grep -x '[0-9]\+' | sort -un)}
    [ "$cuda_lacks" ] || architectures_of $gpus
    if [ ! "$cuda_lacks" ] && ! kernels "$architectures"; then
      cuda_lacks="compiler that works ($(grep -m1 -i error "$work/errors"))"
    fi
    nvcc+=${architectures:+ $architectures}
  fi
  if [ ! "$cuda_lacks" ]; then
    has_cuda=1
    cppflags_before=$cppflags
    cppflags+=$cuda_cppflags
    found+=("CUDA|$(version cuda_runtime.h CUDART_VERSION | sed 's/0\(.\)0$/.\1/'), cuDNN $(version cudnn.h CUDNN_{MAJOR,MINOR,PATCHLEVEL})$host_note$cuda_note")
    cppflags=$cppflags_before
  elif [ "$cuda" = 1 ]; then
    missing+=("CUDA with cuDNN, which CUDA=1 asks for; it lacks $cuda_lacks (CUDA_HOME says where CUDA is; NVIDIA's packages hold both)||")
  else
    without+=("CUDA|no training on a GPU; there is no $cuda_lacks||")
  fi
elif [ "$cuda" = 0 ]; then
  without+=("CUDA|turned off by CUDA=0: no training on a GPU||")
fi

# ---- The headers of the compiler and of the libraries. An upgrade need not change a version, and its files may be older than
# the objects that were made with those before, so that the build goes by a digest of all their content.
headers=
: >"$out/headers.txt"  # A list of headers that are gone would have make look at the machine again and again.
if [ "$works" ]; then
  for header in stb/stb_image.h CLI/CLI.hpp nlohmann/json.hpp openssl/{crypto,evp,hmac,rand}.h zlib.h gtest/gtest.h \
    ${openmp:+omp.h} ${has_onednn:+dnnl.hpp} ${has_cuda:+cuda_runtime.h cublas_v2.h cudnn.h}; do
    printf '#if __has_include(<%s>)\n#include <%s>\n#endif\n' "$header" "$header"
  done >"$work/all"
  compile $openmp ${has_cuda:+$cuda_cppflags} -M - <"$work/all" 2>"$work/errors" |
    sed 's/\\$//' | xargs printf '%s\n' | grep '^/' >"$work/headers"
  headers=$({ $cxx --version; xargs -d '\n' cat <"$work/headers"; } | sha256sum | cut -c 1-16)
  xargs -r -d '\n' stat -L -c '%s %Y %n' <"$work/headers" >"$out/headers.txt"
fi

# ---- Write it down.
{
  echo "# Written by make/probe.sh."
  echo "CONFIG_CXX := $cxx"
  echo "CONFIG_CPPFLAGS :=$cppflags"
  echo "CONFIG_LDFLAGS :=$ldflags"
  echo "CONFIG_OPENMP := $openmp"
  echo "CONFIG_ONEDNN := $has_onednn"
  echo "CONFIG_CUDA := $has_cuda"
  echo "CONFIG_NVCC := $nvcc"
  echo "CONFIG_CUDA_CPPFLAGS :=$cuda_cppflags"
  echo "CONFIG_CUDA_LDFLAGS :=$cuda_ldflags"
  echo "CONFIG_GTEST := $gtest"
  echo "CONFIG_HEADERS := $headers"
  echo "CONFIG_MISSING := ${#missing[@]}"
} >"$out/config.mk.new"

# package DEBIAN FEDORA: prints the name that this machine's package manager knows.
package() { if ! command -v apt-get >/dev/null && [ -e "$machine/etc/redhat-release" ]; then echo "$2"; else echo "$1"; fi; }

{
  for entry in ${found[@]+"${found[@]}"}; do
    printf '  found    %-11s %s\n' "${entry%%|*}" "${entry#*|}" | sed 's/ *$//'
  done
  more=
  for entry in ${without[@]+"${without[@]}"}; do
    IFS='|' read -r what cost debian fedora <<<"$entry"
    name=$(package "$debian" "$fedora")
    more+=$name
    printf '  without  %-11s %s%s\n' "$what" "$cost" "${name:+ (package $name)}"
  done
  if [ -d "$deps/usr" ]; then echo "  .deps/ was searched first"; fi
  if [ ${#missing[@]} -gt 0 ]; then
    echo
    echo "Cannot build. This machine lacks"
    more=
    for entry in "${missing[@]}"; do
      IFS='|' read -r what debian fedora <<<"$entry"
      name=$(package "$debian" "$fedora")
      printf '  %s%s\n' "$what" "${name:+: package $name}"
      more+=$name
    done
    [ ! "$more" ] || echo "\`make deps' installs what is missing (without root it unpacks the packages into .deps/)."
  elif [ "$more" ]; then
    echo "  \`make deps' installs those that have a package"
  fi
} >"$out/config.txt"
mv "$out/config.mk.new" "$out/config.mk"
