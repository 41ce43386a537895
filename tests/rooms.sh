#!/bin/bash
# The sizes of files, folders and rooms, and that no headers include each other in a circle. Prints a line for every
# breach. Usage: tests/rooms.sh [ROOT]    Without ROOT: tries itself on breaches made for it, then looks at this checkout.
set -eu

longest=400  # Lines of a file.
median=80    # Lines of the file in the middle.
flat=26      # Files of a folder: about twenty.
largest=25   # Percent of the code in one room, the tests' left out.

sources() { find core layers models datasets net tools course tests \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) 2>/dev/null | sort; }
programs() { sources; find tools tests make \( -name '*.py' -o -name '*.sh' \) 2>/dev/null | sort; }

# circles: the headers that lead back to themselves.
circles() {
  sources | grep '\.h$' | xargs -r awk '
    /^[ \t]*#[ \t]*include[ \t]+"/ { split($0, parts, "\""); includes[FILENAME] = includes[FILENAME] " " parts[2] }
    function visit(file, path,   names, count, i) {
      if (state[file] == 1) { print "a circle of includes: " path " -> " file; broken = 1; return }
      if (state[file] == 2) return
      state[file] = 1
      count = split(includes[file], names, " ")
      for (i = 1; i <= count; i++) visit(names[i], path " -> " file)
      state[file] = 2
    }
    END { for (file in includes) visit(file, ""); exit broken }'
}

# check ROOT: exit code 1 where something is too large, or goes in a circle.
check() (
  cd "$1"
  broken=0
  programs | xargs -r wc -l | awk -v longest=$longest '$2 != "total" && $1 > longest { print $2 ": " $1 " lines; " longest " are the most"; broken = 1 }
    END { exit broken }' || broken=1
  sources | xargs -r wc -l | awk '$2 != "total" { print $1 }' | sort -n | awk -v most=$median '{ lines[NR] = $1 }
    END { middle = lines[int((NR + 1) / 2)]; if (middle > most) { print "half of the files have more than " middle " lines"; exit 1 } }' || broken=1
  programs | sed 's,/[^/]*$,,' | sort | uniq -c | awk -v flat=$flat '$1 > flat { print $2 "/: " $1 " files; make rooms" ; broken = 1 }
    END { exit broken }' || broken=1
  sources | grep -v '^tests/' | xargs -r wc -l | awk -v largest=$largest '
    $2 == "total" { next }
    { all += $1; sub(/\/[^\/]*$/, "", $2); lines[$2] += $1; count[$2]++ }
    END { for (room in lines) if (all > 4000 && 100 * lines[room] > largest * all) { print room "/: more than a quarter of the code"; broken = 1 }
          exit broken }' || broken=1
  circles || broken=1
  exit $broken
)

# expect TEXT: the tree in $made must be found at fault with this.
expect() {
  local found code=0
  found=$(check "$made") || code=$?
  rm -rf "$made"
  [[ $code = 1 && $found == *"$1"* ]] || { echo "this test is blind to: $1" >&2; exit 1; }
}
fresh() { made=$(mktemp -d); mkdir -p "$made"/{core,net,tools}; }

if [ $# -gt 0 ]; then
  check "$1"
  exit
fi
fresh; seq 401 > "$made/core/long.cpp"; expect 'core/long.cpp: 401 lines'
fresh; for i in 1 2 3; do seq 90 > "$made/core/$i.cpp"; done; expect 'half of the files have more than 90 lines'
fresh; for i in $(seq 27); do : > "$made/core/$i.cpp"; done; expect 'core/: 27 files'
fresh; for i in $(seq 12); do seq 400 > "$made/core/$i.cpp"; done; expect 'core/: more than a quarter'
fresh; echo '#include "net/b.h"' > "$made/net/a.h"; echo '#include "net/a.h"' > "$made/net/b.h"; expect 'a circle of includes'
fresh; seq 10 > "$made/core/short.cpp"; check "$made"; rm -rf "$made"
check "$(dirname "$0")/.."
