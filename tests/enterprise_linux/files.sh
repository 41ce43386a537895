# files PACKAGE: prints the path of the one file that a package of the tests' repositories has: the one that the build looks for.
files() {
  case $1 in
    stb_image-devel) echo usr/include/stb/stb_image.h ;;
    cli11-devel) echo usr/include/CLI/CLI.hpp ;;
    json-devel) echo usr/include/nlohmann/json.hpp ;;
    openssl-devel) echo usr/include/openssl/hmac.h ;;
    zlib-devel | zlib-ng-compat-devel) echo usr/include/zlib.h ;;
    onednn-devel) echo usr/include/dnnl.hpp ;;
    gtest-devel) echo usr/include/gtest/gtest.h ;;
    gcc-c++) echo usr/bin/g++ ;;
    gcc-toolset-*-gcc-c++) echo "opt/rh/${1%-gcc-c++}/root/usr/bin/g++" ;;
    *) echo "usr/share/doc/$1/README" ;;
  esac
}

# place FOLDER PACKAGE VERSION: puts the package's file below the folder. A compiler has a linker beside it, and says which
# of them it is, and where it is called from.
place() {
  local file=$1/$(files "$2") version=${3%%.*}
  mkdir -p "$(dirname "$file")"
  case $file in
    */g++)
      printf '#!/bin/bash\n[ "$1" != -dumpversion ] || { echo %s; exit; }\necho "g++ %s by $0 $* PATH=$PATH"\n' "$version" "$version" >"$file"
      printf '#!/bin/bash\n' >"${file%g++}ld.bfd"
      chmod +x "$file" "${file%g++}ld.bfd" ;;
    *) echo "// $2 $3" >"$file" ;;
  esac
}
