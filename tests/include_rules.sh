#!/bin/bash
# The rules of who may include whom. Prints "file:line: include: why not" for every breach.
# Usage: tests/include_rules.sh [ROOT]    Without ROOT: tries itself on breaches made for it, then
# looks at this checkout.
set -eu

# check ROOT: exit code 1 where a rule is broken.
check() (
  cd "$1"
  find core layers models datasets net tools tests \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) \
    2>/dev/null | sort | xargs -r awk '
    BEGIN {
      # Which of our folders a folder may include.
      may["core"] = "core"
      may["datasets"] = "core datasets"
      may["net"] = "core net"
      may["layers"] = "core layers"
      may["models"] = "core layers models"
      may["tools"] = "core layers models datasets net tools"
      # The one place where a vendor is known.
      home["dnnl"] = home["oneapi"] = "core/onednn"
      home["cudnn"] = home["cuda"] = home["cublas"] = home["nvml"] = "core/cudnn"
      home["stb"] = "datasets"
      home["openssl"] = "net"
      home["CLI"] = "tools"
    }
    function breach(why) { printf "%s:%d: #include %s: %s\n", FILENAME, FNR, written, why; broken = 1 }
    function listed(word, list) { return index(" " list " ", " " word " ") > 0 }
    /^[ \t]*#[ \t]*include[ \t]/ {
      written = $0
      sub(/^[ \t]*#[ \t]*include[ \t]*/, "", written)
      sub(/[ \t]*(\/\/.*)?$/, "", written)
      name = substr(written, 2, length(written) - 2)
      split(FILENAME, parts, "/")
      folder = parts[1]
      allowed = may[folder]
      if (folder == "tests") {
        # A folder'"'"'s tests may include what it may; tests of the whole, everything.
        allowed = (parts[2] in may ? may[parts[2]] : may["tools"]) " tests"
      }
      split(name, target, "/")
      if (written ~ /^"/) {
        if (!(target[1] in may) && target[1] != "tests") {
          breach("a header of ours is written from the root of the repository, a vendor'"'"'s in <>")
        } else if (!listed(target[1], allowed)) {
          breach(folder (folder == "tests" ? "/" parts[2] : "") " may include only " allowed)
        } else if (folder == "core" && parts[3] != "" && target[3] != "" && target[2] != parts[2]) {
          breach("one backend does not include another")
        }
      } else {
        vendor = target[1]
        sub(/[_.].*$/, "", vendor)
        if ((vendor in home) && index(FILENAME, home[vendor] "/") != 1 &&
            !(home[vendor] == "core/cudnn" && index(FILENAME, "tests/stand_in/") == 1)) {
          breach(vendor " is included in " home[vendor] " only")
        }
        if (vendor == "nlohmann" && folder == "core" && FILENAME != "core/safetensors.cpp") {
          breach("JSON is known to core/safetensors.cpp alone in core")
        }
        if (vendor in may) breach("a header of ours is written in quotes")
      }
    }
    END { exit broken }'
)

# expect FILE INCLUDE: a tree with this one line must be found at fault.
expect() {
  local root found
  root=$(mktemp -d)
  mkdir -p "$root/$(dirname "$1")"
  printf '// First line.\n#include %s\n' "$2" >"$root/$1"
  found=$(check "$root" || true)
  rm -rf "$root"
  if [[ $found != "$1:2: #include $2: "* ]]; then
    echo "this test is blind to #include $2 in $1" >&2
    exit 1
  fi
}

# allow FILE INCLUDE: and this one must not.
allow() {
  local root found
  root=$(mktemp -d)
  mkdir -p "$root/$(dirname "$1")"
  printf '#include %s\n' "$2" >"$root/$1"
  found=$(check "$root" || true)
  rm -rf "$root"
  if [ "$found" ]; then
    echo "this test objects to what is allowed: $found" >&2
    exit 1
  fi
}

if [ $# -gt 0 ]; then
  check "$1"
  exit
fi
expect core/device.cpp '"layers/conv.h"'
expect net/store.cpp '"layers/conv.h"'
expect datasets/idx.h '"net/frame.h"'
expect layers/conv.cpp '"models/registry.h"'
expect models/lenet.cpp '"tools/table.h"'
expect tests/net/store_test.cpp '"datasets/idx.h"'
expect core/device.cpp '"shape.h"'
expect core/reference/conv.cpp '"core/onednn/context.h"'
expect core/device.cpp '<dnnl.hpp>'
expect core/device.cpp '<oneapi/dnnl/dnnl.hpp>'
expect core/onednn/conv.cpp '<cudnn.h>'
expect tests/stand_in/dnn.cpp '<dnnl.hpp>'
expect tools/pack.cpp '<stb/stb_image.h>'
expect core/random.cpp '<openssl/evp.h>'
expect net/key.cpp '<CLI/CLI.hpp>'
expect core/device.h '<nlohmann/json.hpp>'
expect tools/local.cpp '<core/shape.h>'
allow tools/local.cpp '"net/store.h"'
allow core/onednn/conv.cpp '<dnnl.hpp>'
allow core/device.cpp '"core/onednn/device.h"'
allow tests/models/models_test.cpp '"layers/network.h"'
allow tests/dist_test.cpp '"net/store.h"'
allow tests/stand_in/dnn.cpp '<cudnn.h>'
allow datasets/stb.cpp '<stb/stb_image.h>'
check "$(dirname "$0")/.."
