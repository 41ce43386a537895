#!/bin/bash
# Makes the bundle: one archive with the program and all that it needs, which runs from any folder of any x86-64 Linux
# with kernel 3.10 or later (docs/bundle.md). Two archives of the same parts are the same to the bit.
# Usage: make/bundle/bundle.sh PARTS PROGRAM OUT
#   PARTS    folder with what the Makefile linked for it: starter, duplex, and duplex-cudnn.so unless it is left out
#   PROGRAM  the ordinary program, which knows where its libraries are on this machine
#   OUT      folder for the archive
# Environment: COMMIT  what was built, as `duplex --version` has it
# Prints the archive's path, and what could not be found out on standard error. Exit code: 0, or 1 with a line that says why.
set -eu
parts=$1 program=$2 out=$3
project=$(cd "$(dirname "$0")/../.." && pwd)
fail() { echo "bundle: $*" >&2; exit 1; }
[ "$(uname -sm)" = 'Linux x86_64' ] || fail "this machine is $(uname -sm); bundles are made on and for Linux x86_64"
for tool in ldd readelf sha256sum tar gzip; do command -v $tool >/dev/null || fail "there is no $tool here; install it"; done
version=$(sed -n 's/.*program_version = "\([^"]*\)".*/\1/p' "$project/tools/text/version.h")
[ "$version" ] || fail "tools/text/version.h has no program_version"
# Files get the commit's date; outside of a checkout, that of SOURCE_DATE_EPOCH, or of 1970.
date=${SOURCE_DATE_EPOCH:-$(git -C "$project" log -1 --format=%ct 2>/dev/null || echo 0)}
umask 022
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
top=$work/duplex-$version
mkdir -p "$top"/{bin,lib,licences} "$out"
cp "$parts/starter" "$top/duplex"
cp "$parts/duplex" "$top/bin"
[ ! -e "$parts/duplex-cudnn.so" ] || cp "$parts/duplex-cudnn.so" "$top/bin"
echo "$version, commit $COMMIT" >"$top/VERSION"

# ---- Libraries: those that the program needs, and all of the C library, since a library of the machine (CUDA's, those by
# which it looks up names) would else take parts of another C library.
loader=ld-linux-x86-64.so.2
needed=$(ldd "$program") || fail "ldd $program: $needed"
missing=$(sed -n 's/^[[:space:]]*\([^ ]*\) => not found.*/\1/p' <<<"$needed")
[ ! "$missing" ] || fail "$program needs $(echo $missing), which this machine lacks; make deps installs it"
mapfile -t libraries < <(sed -n -E 's/^[[:space:]]*([^ ]+ => )?(\/[^ ].*) \(0x[0-9a-f]+\)$/\2/p' <<<"$needed" | sort)
c_library=
for library in "${libraries[@]}"; do
  case ${library##*/} in libc.so.6) c_library=${library%/*} ;; esac
  cp -L "$library" "$top/lib/${library##*/}"
done
[ "$c_library" ] && [ -e "$top/lib/$loader" ] || fail "$program is not linked with glibc and its loader $loader; make it with glibc"
for name in libanl.so.1 libdl.so.2 libmvec.so.1 libnss_dns.so.2 libnss_files.so.2 libpthread.so.0 libresolv.so.2 librt.so.1 libutil.so.1; do
  [ ! -e "$c_library/$name" ] || [ -e "$top/lib/$name" ] || { cp -L "$c_library/$name" "$top/lib"; libraries+=("$c_library/$name"); }
done
# All that the files need is there, but for what comes from NVIDIA.
for file in "$top"/bin/* "$top"/lib/*; do
  for name in $(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
    case $name in libcublas.so.* | libcudnn.so.* | libcudart.so.* | libcuda.so.*) continue ;; esac
    [ -e "$top/lib/$name" ] || fail "${file##*/} needs $name, which is not among the program's libraries"
  done
  [[ ! $(readelf -d "$file") =~ \((RPATH|RUNPATH)\).*\[(/[^]]*)\] ]] ||
    fail "${file##*/} looks for libraries in ${BASH_REMATCH[2]}, before those of the bundle; link it without"
done

# ---- Licences: those of the packages that own the libraries, and of headers that are compiled in.
# package_of FILE: prints the package that owns a file, under one of the names that its path has where /lib leads to /usr/lib.
package_of() {
  local path found
  for path in "$1" "/usr$1" "${1#/usr}" "$(realpath "$1")"; do
    if command -v dpkg-query >/dev/null && found=$(dpkg-query -S "$path" 2>/dev/null); then
      found=${found%%: *}
      echo "${found%%:*}"
      return
    elif command -v rpm >/dev/null && found=$(rpm -qf --qf '%{NAME}\n' "$path" 2>/dev/null); then
      echo "${found%%$'\n'*}"
      return
    fi
  done
}
# version_of PACKAGE
version_of() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || rpm -q --qf '%{VERSION}-%{RELEASE}' "$1" 2>/dev/null || echo -; }
# licence_of PACKAGE: copies what the distribution has of the package's licence. Returns 1 if there is nothing.
licence_of() {
  local package=$1 file texts=()
  [ ! -e "$top/licences/$package" ] || return 0
  if [ -s "/usr/share/doc/$package/copyright" ]; then texts=("/usr/share/doc/$package/copyright")
  elif command -v rpm >/dev/null; then mapfile -t texts < <(rpm -q --licensefiles "$package" 2>/dev/null | grep '^/' | sort); fi
  for file in ${texts+"${texts[@]}"}; do
    [ -s "$file" ] || continue
    printf '%s\n' "${texts[@]}" | grep -qvxF "$file" && echo "== ${file##*/}" >>"$top/licences/$package"
    cat "$file" >>"$top/licences/$package"
  done
  [ -e "$top/licences/$package" ]
}

headers=()
for header in stb/stb_image.h CLI/CLI.hpp nlohmann/json.hpp; do
  for folder in "$project/.deps/usr/include" /usr/local/include /usr/include; do
    [ ! -e "$folder/$header" ] || { headers+=("$folder/$header"); break; }
  done
done
cp "$project/LICENSE" "$top/licences/duplex"
if [ -e "$top/bin/duplex-cudnn.so" ]; then
  # Its kernels and libcudart_static are NVIDIA's where nvcc put them in; its other libraries are the machine's.
  echo 'duplex-cudnn.so contains parts of the CUDA Toolkit (libcudart_static), Copyright NVIDIA Corporation, which may be' >"$top/licences/cuda"
  echo 'redistributed under its licence agreement, Attachment A: https://docs.nvidia.com/cuda/eula/' >>"$top/licences/cuda"
fi
# All of .deps/ was unpacked together; no list says which package brought which file.
texts=0
for text in "$project"/.deps/usr/share/doc/*/copyright "$project"/.deps/usr/share/licenses/*/*; do
  [ -s "$text" ] || continue
  folder=${text%/*}
  cat "$text" >>"$top/licences/${folder##*/}"
  texts=$((texts + 1))
done
unknown=
{
  echo 'What the files of this bundle come from: file, package, version. The texts of the licences lie here under the name of'
  echo 'the package. Debian keeps the sources of every version.'
  echo
  for file in "${libraries[@]}" ${headers+"${headers[@]}"}; do
    if [[ $file == "$project/.deps"/* ]]; then
      printf '%-26s unpacked by make deps or make carry\n' "${file##*/}"
      [ $texts -gt 0 ] || unknown+=" ${file##*/}"
    elif package=$(package_of "$file") && [ "$package" ]; then
      printf '%-26s %-24s %s\n' "${file##*/}" "$package" "$(version_of "$package")"
      licence_of "$package" || unknown+=" ${file##*/}"
    else
      printf '%-26s of no package\n' "${file##*/}"
      unknown+=" ${file##*/}"
    fi
  done
} >"$top/licences/SOURCES"
[ ! "$unknown" ] ||
  echo "bundle: no licence was found for$unknown; before you give the bundle away, add what its maker demands to licences/" >&2
# Debian's texts name these files instead of repeating them.
for common in /usr/share/common-licenses/*; do
  name=${common##*/}
  grep -qE "common-licenses/$name($|[^-0-9A-Za-z.]|\.($|[^0-9]))" "$top"/licences/* 2>/dev/null || continue
  mkdir -p "$top/licences/common-licenses"
  cp -L "$common" "$top/licences/common-licenses/"
done

# ---- The archive.
(cd "$top" && find . -type f | sed 's,^\./,,' | sort | xargs -d '\n' sha256sum >"$work/MANIFEST")
mv "$work/MANIFEST" "$top/MANIFEST"
find "$top" -type f -exec chmod 644 {} +
chmod 755 "$top/duplex" "$top/bin/duplex" "$top/lib/$loader"
archive=$out/duplex-$version-linux-x86_64.tar.gz
tar -C "$work" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$date" -cf - "duplex-$version" |
  gzip -n >"$archive.new"
mv "$archive.new" "$archive"
echo "$archive"
