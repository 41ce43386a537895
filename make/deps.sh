#!/bin/bash
# Gets what Duplex needs and this machine lacks, from the distribution's packages. As root it
# installs them; without root it has the package manager download them and unpacks them into .deps/,
# where the Makefile looks first. If nothing is missing, it ends at once.
# Usage: make/deps.sh [GROUP]...
#   build   compiler and libraries
#   test    GoogleTest; the images of Fashion-MNIST; as root also gnuplot, whose charts a test looks at, chromium and
#           python3, which open the reports, tc, which makes the network lab, and busybox, which the bundle is tested beside
#   demo    the images of Fashion-MNIST
#   bench   iperf3, beside which the wire is timed; as root also python3, and tc, which makes the network lab
#   torch   as root, python3 and its venv, with which the newest PyTorch is installed (tools/benchmarks/cpu/peer.py), and
#           Python's headers, which torch.compile needs
cd "$(dirname "$0")/.." || exit 1
deps=$PWD/.deps
. make/distribution.sh

# Do not trust what an interrupted unpacking left; keep what make/carry.sh brought.
if [ -e "$deps/incomplete" ]; then
  kept=$(mktemp)
  if [ -e "$deps/carried" ]; then tar -C "$deps" -cf "$kept" carried -T "$deps/carried"; fi
  rm -rf "$deps"
  if [ -s "$kept" ]; then mkdir "$deps" && tar -C "$deps" -xf "$kept"; fi
  rm -f "$kept"
fi

# ---- Find out what is missing.

# have FILE: succeeds if the file is where a compiler, or this project, looks for it.
have() {
  local folder
  for folder in "$machine/" "$deps/" "$machine/usr/local/"; do [ -e "$folder$1" ] && return; done
  [ "${1#usr/include/}" = "$1" ] && return 1
  local IFS=:
  for folder in "$machine/usr/local/include" ${CPATH:-} ${CPLUS_INCLUDE_PATH:-}; do
    [ -e "$folder/${1#usr/include/}" ] && return
  done
  return 1
}

# unavailable: succeeds if an optional package was asked for in vain within a day, so that nobody waits for that again.
unavailable() { find "$deps/unavailable" -mmin -1440 2>/dev/null | grep -q .; }

fashion_mnist() { [ "${FASHION_MNIST:-}" ] || have usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz; }

# python_of_distribution: succeeds if there is no python3, or only the one of the distribution's packages.
python_of_distribution() { case $(command -v python3) in '' | /usr/bin/python3 | /bin/python3) ;; *) return 1 ;; esac; }
python_has() { python3 -c "import $1" 2>/dev/null; }
python_headers() { [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)/Python.h" ]; }

# compiler: succeeds if there is a g++ that is new enough, where make/probe.sh looks for it.
compiler() { gxx_fits g++ || [ -x "$deps/bin/g++" ] || toolset_of "$machine" >/dev/null; }

missing=()   # Entries are "what|Debian package|Fedora package|optional, or nothing|least version, which dnf is asked for".
want() { missing+=("$*"); }
# Only root gets these programs, which would not be found where they are unpacked.
want_python() { [ "$(id -u)" != 0 ] || command -v python3 >/dev/null || unavailable || want 'python3|python3|python3|optional'; }
want_gnuplot() { [ "$(id -u)" != 0 ] || command -v gnuplot >/dev/null || unavailable || want 'gnuplot|gnuplot-nox|gnuplot|optional'; }
want_tc() { [ "$(id -u)" != 0 ] || command -v tc >/dev/null || unavailable || want 'tc|iproute2|iproute-tc|optional'; }
want_busybox() { [ "$(id -u)" != 0 ] || command -v busybox >/dev/null || unavailable || want 'busybox|busybox-static|busybox|optional'; }
for group in "${@:-build}"; do
  case $group in
    build)
      # A user who names another compiler than g++ installs it.
      [ "${CXX:-g++}" != g++ ] || compiler || want "a C++ compiler from g++ $least_gxx on|g++|gcc-c++|"
      have usr/include/stb/stb_image.h || want 'stb|libstb-dev|stb_image-devel|'
      have usr/include/CLI/CLI.hpp || want 'CLI11|libcli11-dev|cli11-devel||2.1'
      have usr/include/nlohmann/json.hpp || want 'json|nlohmann-json3-dev|json-devel||3.9'
      have usr/include/openssl/hmac.h || want 'OpenSSL|libssl-dev|openssl-devel||1.1.1'
      have usr/include/zlib.h || want 'zlib|zlib1g-dev|zlib-devel|'
      [ "${ONEDNN:-}" = 0 ] || have usr/include/dnnl.hpp || unavailable ||
        want 'oneDNN|libdnnl-dev|onednn-devel|optional|2.0' ;;
    test)
      have usr/include/gtest/gtest.h || want 'GoogleTest|libgtest-dev|gtest-devel||1.10'
      want_gnuplot
      fashion_mnist || unavailable || want 'Fashion-MNIST|dataset-fashion-mnist||optional'
      want_tc  # The network lab's tests need it.
      want_busybox  # It is all that the root has in which the bundle is tested.
      # Only root gets chromium, whose hundreds of megabytes are too much to unpack beside a checkout; python3 looks at
      # what it made of a page.
      want_python
      [ "$(id -u)" != 0 ] || command -v chromium >/dev/null || unavailable || want 'chromium|chromium|chromium-headless|optional' ;;
    demo)
      fashion_mnist || want 'Fashion-MNIST|dataset-fashion-mnist||' ;;
    bench)
      command -v iperf3 >/dev/null || have usr/bin/iperf3 || unavailable || want 'iperf3|iperf3|iperf3|optional'
      want_tc
      want_python ;;
    torch)
      want_python
      # A user who put another python3 there than the distribution's installs what belongs to it.
      [ "$(id -u)" != 0 ] || ! python_of_distribution || python_has ensurepip || unavailable ||
        want 'venv|python3-venv|python3-pip|optional'
      [ "$(id -u)" != 0 ] || ! python_of_distribution || python_headers || unavailable ||
        want 'Python.h|python3-dev|python3-devel|optional' ;;
    *) echo "make/deps.sh: unknown group $group (known: build test demo bench torch)" >&2; exit 2 ;;
  esac
done
[ ${#missing[@]} = 0 ] && exit 0

# ---- Choose the packages.
if command -v apt-get >/dev/null; then manager=apt
elif command -v dnf >/dev/null; then manager=dnf
else manager=none; fi

needed=() optional=() names=
for entry in "${missing[@]}"; do
  IFS='|' read -r what debian fedora flag _ <<<"$entry"
  if [ "$manager" = apt ] || [ "$manager" = none ]; then package=$debian; else package=$fedora; fi
  if [ -z "$package" ]; then
    [ -z "$flag" ] || continue
    echo "$what is not packaged for this distribution. Put its four files (*-ubyte.gz) into a folder" >&2
    echo "DIR and run \`make demo FASHION_MNIST=DIR'." >&2
    exit 1
  fi
  names+="${names:+, }$what"
  if [ "$flag" ]; then optional+=("$package"); else needed+=("$package"); fi
done
[ "$names" ] || exit 0
echo "Missing: $names."

# go_without WHY PACKAGE...: says that these optional packages are missing, and notes it for `unavailable'.
go_without() {
  echo "$1; going without ${*:2}."
  mkdir -p "$deps" && touch "$deps/unavailable"
}

# fail WHY: ends the script, with an error if anything needed is missing.
fail() {
  if [ ${#needed[@]} = 0 ]; then
    go_without "${1%.}" "${optional[@]}"
    exit 0
  fi
  echo >&2
  echo "$1" >&2
  local all="${needed[*]} ${optional[*]}" libraries=
  echo "Still missing: ${all% }." >&2
  if [[ " $1" == *" libcli11-dev "* ]]; then
    echo "Debian has CLI11 from 12 on, Ubuntu from 22.04 on; 2.1 or newer is wanted, and it is headers alone. Run" >&2
    echo "\`make carry' in a checkout on such a machine and copy its .deps/ folder into this one; then try again." >&2
  else
    [[ " $all " =~ ' '(libssl|libgtest|zlib1g)-dev ]] && libraries=' LIBRARIES=1'
    echo "Install these packages, or run \`make carry$libraries' on a machine like this one and bring its .deps/ folder." >&2
  fi
  exit 1
}
[ "$manager" = none ] && fail "This machine has neither apt-get nor dnf. CentOS 7 and older systems are too old to build on: run \`make bundle' on another
machine and bring its archive, which runs here as it is (docs/bundle.md)."

# ---- Debian, Ubuntu.
apt_options=(-q -o Acquire::Retries=2 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20
  -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 -o APT::Get::List-Cleanup=false)

# Updates the lists and drops optional packages that are not in them. Another source of this machine
# may be out of reach, so this fails only if the lists do not have a needed package.
apt_update() {
  local package known=()
  apt-get "${apt_options[@]}" update >"$work/log" 2>&1 || true
  for package in "${needed[@]}"; do
    apt-cache "${apt_options[@]}" show "$package" >/dev/null 2>&1 || apt_fail "$package is in no list of packages."
  done
  for package in "${optional[@]}"; do
    if apt-cache "${apt_options[@]}" show "$package" >/dev/null 2>&1; then known+=("$package")
    else go_without "It is in no list of packages" "$package"; fi
  done
  optional=("${known[@]}")
}

apt_fail() {
  grep -E '^(E|W):' "$work/log" | sort -u | head -n 6 >&2
  fail "$1"
}

apt_as_root() {
  export DEBIAN_FRONTEND=noninteractive
  apt_update
  [ $((${#needed[@]} + ${#optional[@]})) = 0 ] && return
  echo "Installing packages:" "${needed[@]}" "${optional[@]}"
  apt-get "${apt_options[@]}" install -y --no-install-recommends "${needed[@]}" "${optional[@]}" \
    >>"$work/log" 2>&1 || apt_fail "apt-get could not install them."
}

apt_without_root() {
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  apt_options+=(-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o Debug::NoLocking=1
    -o Acquire::Languages=none)
  apt_update
  [ $((${#needed[@]} + ${#optional[@]})) = 0 ] && return
  echo "Unpacking packages into .deps/ (no root here):" "${needed[@]}" "${optional[@]}"
  apt-get "${apt_options[@]}" install -y --no-install-recommends --download-only \
    "${needed[@]}" "${optional[@]}" >>"$work/log" 2>&1 || apt_fail "apt-get could not download them."
  local file
  touch "$deps/incomplete"
  for file in "$work"/cache/archives/*.deb; do
    case ${file##*/} in
      # The C library must be that of the loader with which the machine starts programs.
      libc6_* | libc-bin_*) continue ;;
    esac
    dpkg-deb -x "$file" "$deps" || fail "Could not unpack ${file##*/} into .deps/."
  done
}

# ---- After unpacking: repair files that assume that they lie in /.
relocate() {
  local link target path script
  # A broken link names an unpacked file from /, or a file that is part of the system; this points it there.
  find "$deps/usr" "$deps/opt" -xtype l 2>/dev/null | while read -r link; do
    target=$(readlink "$link")
    case $target in /*) ;; *) target=$(realpath -ms "$(dirname "${link#"$deps"}")/$target") ;; esac
    for path in "$deps$target" "$deps/usr$target" "$target"; do
      if [ -e "$path" ]; then
        ln -sfn "$path" "$link"
        break
      fi
    done
  done
  # The linker's scripts name files from / too.
  find "$deps/usr" "$deps/opt" -name 'lib*.so' -type f -size -4k 2>/dev/null | while read -r script; do
    grep -q 'GNU ld script' "$script" || continue
    for target in $(grep -o '/[^ ()]*' "$script" | grep '^/[a-z]'); do
      if [ ! -e "$target" ] && [ -e "$deps$target" ]; then sed -i "s| $target | $deps$target |g" "$script"; fi
    done
  done
  # A compiler in .deps/ has to find its own libraries, the assembler, and the C library's headers.
  local bin=usr/bin toolset
  if toolset=$(toolset_of "$deps"); then bin=${toolset#"$deps"/}/usr/bin; fi
  if [ -x "$deps/$bin/g++" ] && [ ! -x "$deps/bin/g++" ]; then
    for path in "$deps/$bin" "$deps/usr/bin"; do
      # Fedora's packages leave this link to a script that runs when they are installed.
      if [ -x "$path/ld.bfd" ] && [ ! -e "$path/ld" ]; then ln -sfn ld.bfd "$path/ld"; fi
    done
    mkdir -p "$deps/bin"
    printf '#!/bin/bash\nbin=%s\n' "$bin" >"$deps/bin/g++"
    cat >>"$deps/bin/g++" <<'END'
# Runs the compiler that was unpacked here, and tells it where its parts are.
deps=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=$deps/$bin:$deps/usr/bin:$PATH
flags=()
for lib in "$deps/${bin%/bin}/lib64" "$deps"/usr/lib/*-linux-gnu* "$deps/usr/lib64" "$deps/usr/lib"; do
  [ -d "$lib" ] || continue
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$lib
  flags+=("-B$lib/" "-L$lib")
done
for include in "$deps/usr/include" "$deps"/usr/include/*-linux-gnu*; do
  [ -d "$include" ] && flags+=(-idirafter "$include")
done
exec "$deps/$bin/g++" "${flags[@]}" "$@"
END
    chmod +x "$deps/bin/g++"
  fi
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $manager != dnf ] || . make/dnf.sh
if [ "$(id -u)" = 0 ]; then
  ${manager}_as_root
else
  mkdir -p "$deps" 2>/dev/null
  [ -w "$deps" ] || fail "$deps/ cannot be written to by $(id -un)."
  ${manager}_without_root
  relocate
  date >"$deps/stamp"
  rm -f "$deps/incomplete"
fi
echo "Done."
