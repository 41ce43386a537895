#!/bin/bash
# The rules of who may include whom, and that standard headers are included where they are used. Prints "file:line: include: why
# not" for every breach.
# Usage: tests/include_rules.sh [ROOT]    Without ROOT: tries itself on breaches made for it, then
# looks at this checkout.
set -eu

# sources: lists the source files below the working directory.
sources() {
  find core layers models datasets net tools course tests \( -name '*.h' -o -name '*.hpp' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.cc' -o -name '*.cu' \) \
    2>/dev/null | sort
}

# check ROOT: exit code 1 where a rule is broken.
check() (
  cd "$1"
  sources | xargs -r awk '
    BEGIN {
      # Which of our folders a folder may include.
      may["core"] = "core"
      may["datasets"] = "core datasets"
      may["net"] = "core net"
      may["layers"] = "core layers"
      may["course"] = "core net tools course"
      may["models"] = "core layers models"
      may["tools"] = "core layers models datasets net tools"
      # Which rooms of a folder a room may include beside itself. What lies flat may include all. All
      # folders of net and tools are rooms.
      room["net/crypto"] = room["net/topology"] = room["net/coding"] = ""
      room["net/wire"] = "net/crypto net/coding"
      room["net/ledger"] = "net/wire"
      room["net/store"] = "net/coding net/wire net/topology"
      room["net/rendezvous"] = "net/crypto net/wire net/topology net/ledger"
      room["net/connection"] = "net/coding net/wire net/topology net/ledger net/rendezvous"
      room["net/maps"] = "net/coding net/wire net/topology net/ledger net/rendezvous net/connection"
      room["net/factors"] = "net/coding net/wire net/topology net/ledger net/rendezvous net/store net/connection"
      room["net/exchange"] = "net/maps net/factors net/coding net/wire net/topology net/ledger net/rendezvous net/store net/connection"
      room["layers/kinds"] = room["layers/plan"] = room["layers/exchange"] = ""
      room["layers/placement"] = "layers/kinds layers/plan"
      room["layers/parts"] = "layers/kinds layers/plan layers/exchange layers/placement"
      room["core/gpu"] = room["core/factors"] = room["core/files"] = room["core/reference"] = room["core/processor"] = ""
      room["core/cudnn/kernels"] = ""
      room["core/cudnn/engines"] = "core/gpu core/cudnn/kernels"
      room["core/cudnn/operations"] = "core/cudnn/kernels core/cudnn/engines"
      room["tools/text"] = ""
      room["tools/drawing"] = "tools/text"
      room["tools/run_directory"] = "tools/text"
      room["tools/launch"] = "tools/text tools/display"
      room["tools/deploy"] = "tools/text tools/launch tools/tensorboard"
      room["tools/check"] = "tools/text tools/run_directory tools/launch tools/check/machine"
      room["tools/check/machine"] = "tools/text tools/run_directory"
      room["tools/plan"] = "tools/run_directory"
      room["tools/display"] = "tools/text tools/run_directory tools/plan"
      room["tools/tensorboard"] = "tools/text tools/run_directory"
      room["tools/prediction"] = "tools/text tools/run_directory"
      room["tools/tracing"] = "tools/text tools/run_directory"
      room["tools/checkpoint"] = "tools/text tools/run_directory"
      room["tools/setup"] = "tools/text tools/run_directory tools/plan tools/prediction tools/checkpoint tools/display"
      room["tools/memory"] = "tools/text tools/run_directory tools/plan tools/setup tools/parts"
      room["tools/training"] = "tools/text tools/run_directory tools/plan tools/prediction tools/setup tools/display"
      room["tools/inference"] = "tools/text tools/run_directory tools/plan tools/prediction tools/setup tools/training"
      room["tools/parts"] = "tools/text tools/run_directory tools/plan tools/prediction tools/setup tools/display tools/training tools/drawing tools/partition tools/tracing"
      room["tools/slots"] = "tools/text tools/run_directory tools/plan tools/prediction tools/setup"
      room["tools/dist"] = "tools/text tools/run_directory tools/plan tools/prediction tools/checkpoint tools/setup tools/slots tools/tracing tools/training tools/display tools/tensorboard tools/parts tools/memory tools/check/machine"
      room["tools/simulation"] = "tools/text tools/tracing"
      room["tools/scenario"] = "tools/text tools/run_directory tools/plan tools/prediction tools/simulation tools/parts"
      room["tools/partition"] = "tools/text tools/drawing"
      room["tools/planning"] = "tools/text tools/run_directory tools/plan tools/prediction tools/simulation tools/scenario tools/partition"
      room["tools/report"] = "tools/text tools/run_directory tools/prediction tools/scenario tools/tracing tools/plan tools/drawing tools/parts"
      room["tools/flags"] = "tools/text tools/run_directory tools/plan tools/prediction tools/setup tools/slots tools/checkpoint tools/dist tools/scenario tools/planning tools/launch tools/deploy tools/memory tools/display tools/partition"
      # The one place where a vendor is known.
      home["dnnl"] = home["oneapi"] = "core/onednn"
      home["cudnn"] = home["cuda"] = home["cublas"] = home["nvml"] = "core/cudnn"
      home["stb"] = home["zlib"] = "datasets"
      home["openssl"] = "net"
      home["CLI"] = "tools/flags"
    }
    function breach(why) { printf "%s:%d: #include %s: %s\n", FILENAME, FNR, written, why; broken = 1 }
    # room_of(PATH): the room with rules that it lies in; nothing where it lies flat.
    function room_of(path,   at, within) {
      within = path
      while ((at = match(within, /\/[^\/]*$/)) > 0) {
        within = substr(within, 1, at - 1)
        if (within in room) return within
      }
      return ""
    }
    function wrong_room(name,   from, to) {
      from = room_of(FILENAME)
      to = room_of(name)
      if (from == "" || to == from) return ""
      if (to != "" && index(to, parts[1] "/") == 1 && !listed(to, room[from])) return from " does not include " to
      if (to == "" && name ~ /^tools\//) return "a room does not include a command"
      return ""
    }
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
        if (name ~ /(^|\/)\.\.?\//) {
          breach("a path has no . and no ..")
        } else if (FILENAME ~ /^(net|tools)\/.*\// && room_of(FILENAME) == "") {
          breach("the folder of this file has no rules; give it some here")
        } else if (!(target[1] in may) && target[1] != "tests") {
          breach("a header of ours is written from the root of the repository, a vendor'"'"'s in <>")
        } else if (!listed(target[1], allowed)) {
          breach(folder (folder == "tests" ? "/" parts[2] : "") " may include only " allowed)
        } else if ((why = wrong_room(name)) != "") {
          breach(why)
        } else if (folder == "core" && parts[3] != "" && target[3] != "" && target[2] != parts[2] && target[2] != "processor" && target[2] != "gpu") {
          breach("one backend does not include another")
        }
      } else {
        vendor = target[1]
        sub(/[_.].*$/, "", vendor)
        if ((vendor in home) && index(FILENAME, home[vendor] "/") != 1 &&
            !(home[vendor] == "core/cudnn" && index(FILENAME, "tests/stand_in/") == 1)) {
          breach(vendor " is included in " home[vendor] " only")
        }
        if (vendor == "nlohmann" && folder == "core" && FILENAME != "core/files/safetensors.cpp") {
          breach("JSON is known to core/files/safetensors.cpp alone in core")
        }
        if (vendor in may) breach("a header of ours is written in quotes")
      }
    }
    END { exit broken }'
)

# check_standard ROOT: exit code 1 where a file uses a name of the standard library, and neither it nor a header of ours that it
# includes, itself or through others, includes the name's header. Compilers do not tell: they begin with standard headers
# precompiled, and these include each other.
check_standard() (
  cd "$1"
  sources | xargs -r awk '
    BEGIN {
      by_call["algorithm"] = "count|count_if|sort|stable_sort|max|min|minmax|find|find_if|any_of|all_of|none_of|copy|copy_n|fill|fill_n|transform|reverse|replace|unique|equal|lower_bound|upper_bound|max_element|min_element|clamp|rotate|stable_partition|nth_element|for_each|generate|mismatch|search|is_sorted|binary_search"
      by_call["numeric"] = "accumulate|iota|inner_product|partial_sum|gcd"
      by_call["cmath"] = "sqrt|pow|exp|log|fabs|floor|ceil|isnan|isfinite|isinf|round|lround|llround|nextafter|hypot|fma|tanh|log2|log10"
      by_call["cstring"] = "memcpy|memcmp|strlen|memset|memmove|strcmp|strerror"
      by_call["cstdio"] = "printf|puts|fputs|fprintf|snprintf|fopen|rename"
      by_call["cstdlib"] = "getenv|exit|abort|strtol|strtod|system"
      by_call["memory"] = "make_unique|make_shared"
      by_call["iterator"] = "back_inserter|distance|make_move_iterator|next|prev"
      by_call["tuple"] = "make_tuple|tie"
      by_type["functional"] = "function"
      by_type["optional"] = "optional"
      by_type["memory"] = "unique_ptr|shared_ptr"
      by_type["map"] = "map|multimap"
      by_type["set"] = "set"
      by_type["array"] = "array"
      by_type["atomic"] = "atomic"
      by_type["tuple"] = "tuple"
      by_type["limits"] = "numeric_limits"
      by_type["vector"] = "vector"
      by_type["deque"] = "deque"
      by_name["mutex"] = "mutex|lock_guard|unique_lock"
      by_name["thread"] = "thread|this_thread"
      by_name["condition_variable"] = "condition_variable"
      by_name["sstream"] = "stringstream|ostringstream|istringstream"
      by_name["fstream"] = "ifstream|ofstream"
      by_name["filesystem"] = "filesystem"
      by_name["chrono"] = "chrono"
      by_name["exception"] = "exception_ptr|rethrow_exception|current_exception"
      by_name["string"] = "string|to_string"
      learn(by_call, "("); learn(by_type, "<"); learn(by_name, "")
    }
    function learn(names, behind,   header, list, count, i) {
      for (header in names) {
        count = split(names[header], list, "|")
        for (i = 1; i <= count; i++) header_of[list[i] behind] = header
      }
    }
    FNR == 1 { files[++file_count] = FILENAME }
    /^[ \t]*#[ \t]*include[ \t]/ {
      name = $0
      sub(/^[^<"]*[<"]/, "", name)
      sub(/[>"].*$/, "", name)
      includes[FILENAME] = includes[FILENAME] " " name
      next
    }
    {
      line = $0
      sub(/\/\/.*$/, "", line)
      while ((at = index(line, "std::")) > 0) {
        line = substr(line, at + 5)
        if (!match(line, /^[a-z_0-9]+/)) continue
        word = substr(line, 1, RLENGTH)
        following = substr(line, RLENGTH + 1, 1)
        header = ((word following) in header_of) ? header_of[word following] : header_of[word]
        if (header != "" && !((FILENAME, header) in used)) used[FILENAME, header] = FNR ": std::" word
      }
    }
    # reach(FILE): notes all that it includes, itself or through others, in `reached`.
    function reach(file,   list, count, i) {
      count = split(includes[file], list, " ")
      for (i = 1; i <= count; i++)
        if (!(list[i] in reached)) {
          reached[list[i]] = 1
          reach(list[i])
        }
    }
    END {
      for (i = 1; i <= file_count; i++) {
        split("", reached)
        reach(files[i])
        for (key in used) {
          split(key, parts, SUBSEP)
          if (parts[1] != files[i] || (parts[2] in reached)) continue
          print files[i] ":" used[key] ": #include <" parts[2] "> is missing"
          broken = 1
        }
      }
      exit broken
    }'
)

# expect FILE INCLUDE: a tree with this one line must be found at fault.
expect() {
  local root found code=0
  root=$(mktemp -d)
  mkdir -p "$root/$(dirname "$1")"
  printf '// First line.\n#include %s\n' "$2" >"$root/$1"
  found=$(check "$root") || code=$?
  rm -rf "$root"
  if [[ $code = 0 || $found != "$1:2: #include $2: "* ]]; then
    echo "this test is blind to #include $2 in $1" >&2
    exit 1
  fi
}

# allow FILE INCLUDE: and this one must not.
allow() {
  local root found code=0
  root=$(mktemp -d)
  mkdir -p "$root/$(dirname "$1")"
  printf '#include %s\n' "$2" >"$root/$1"
  found=$(check "$root") || code=$?
  rm -rf "$root"
  if [[ $code != 0 || $found ]]; then
    echo "this test objects to what is allowed: exit code $code, $found" >&2
    exit 1
  fi
}

if [ $# -gt 0 ]; then
  check "$1"
  check_standard "$1"
  exit
fi
cd "$(dirname "$0")/.."

# The page of the architecture has the same rules between rooms.
ours=$(awk '/^ *room\["/ && / = "/ {
  count = split($0, parts, "\"")
  for (i = 2; i <= count - 3; i += 2) print parts[i] ": " (parts[count - 1] == "" ? "nothing" : parts[count - 1]) }' \
  tests/include_rules.sh | sort)
theirs=$(sed -n 's/^    \([a-z_/]*\)  *──► \(.*\)$/\1: \2/p' docs/architecture.md | grep '^[a-z_]*/' | sort)
if [ "$ours" != "$theirs" ]; then
  echo "docs/architecture.md has other rules between rooms than this test:" >&2
  diff <(echo "$ours") <(echo "$theirs") >&2
  exit 1
fi
expect core/device.cpp '"layers/kinds/conv.h"'
expect net/store/store.cpp '"layers/kinds/conv.h"'
expect datasets/idx.h '"net/wire/frame.h"'
expect layers/kinds/conv.cpp '"models/registry.h"'
expect models/lenet.cpp '"tools/text/table.h"'
expect tests/net/store/store_test.cpp '"datasets/idx.h"'
expect core/device.cpp '"shape.h"'
expect core/reference/conv.cpp '"core/onednn/context.h"'
expect core/device.cpp '<dnnl.hpp>'
expect core/device.cpp '<oneapi/dnnl/dnnl.hpp>'
expect core/onednn/operations/conv.cpp '<cudnn.h>'
expect tests/stand_in/dnn.cpp '<dnnl.hpp>'
expect tools/pack.cpp '<stb/stb_image.h>'
expect tools/pack.cpp '<zlib.h>'
expect core/random.cpp '<openssl/evp.h>'
expect net/rendezvous/key.cpp '<CLI/CLI.hpp>'
expect tools/local.cpp '<CLI/CLI.hpp>'
expect core/device.h '<nlohmann/json.hpp>'
expect tools/local.cpp '<core/shape.h>'
expect tools/training/loop.cpp '"tools/flags/training_flags.h"'
expect tools/simulation/wire.cpp '"tools/scenario/scenario.h"'
expect tools/text/table.cpp '"tools/commands.h"'
expect net/store/store.cpp '"net/connection/connection.h"'
expect core/cudnn/kernels/sums.h '"core/cudnn/engines/plan.h"'
expect core/device.cpp '"core/../net/wire/frame.h"'
expect tools/training/loop.hpp '"tools/flags/training_flags.h"'
expect course/01_convolution/check.cpp '"layers/network.h"'
expect tools/new_room/file.h '"tools/text/table.h"'
allow tools/flags/dist_flags.cpp '"tools/setup/setup.h"'
allow net/exchange/exchange.cpp '"net/store/store.h"'
allow tools/local.cpp '"net/store/store.h"'
allow core/onednn/operations/conv.cpp '<dnnl.hpp>'
allow core/device.cpp '"core/onednn/device.h"'
allow tests/models/models_test.cpp '"layers/network.h"'
allow tests/dist_test.cpp '"net/store/store.h"'
allow tests/stand_in/dnn.cpp '<cudnn.h>'
allow datasets/decoding/stb.cpp '<stb/stb_image.h>'

# A header of ours counts, if it includes the name's; one that is only like it does not.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/core"
printf '#include "core/b.h"\nstd::vector<int> a; // std::map<int, int>\nint b = std::max(1, 2);\n' >"$tree/core/a.cpp"
printf '#include <vector>\n' >"$tree/core/b.h"
if found=$(check_standard "$tree") || [ "$found" != "core/a.cpp:3: std::max: #include <algorithm> is missing" ]; then
  echo "this test is blind to a standard header that is missing, or takes others for it: $found" >&2
  exit 1
fi
check .
check_standard .
