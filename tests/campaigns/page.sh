# Functions of the campaigns that write docs/reliability.md. To be sourced from the root of the repository.

page=docs/reliability.md

# section NAME: puts what comes on standard input onto the page as the section of that name, in place of the former one.
# The sections stand in the order of their names.
section() {
  local name=$1 new old=/dev/null
  new=$(mktemp)
  cat >"$new.text"
  [ ! -f "$page" ] || old=$page
  awk -v name="$1" -v text="$new.text" '
    function put() { print "## " name "\n"; while ((getline line < text) > 0) print line; print ""; there = 1 }
    FILENAME == "/dev/null" { next }
    /^## / { skips = 0; if (!there && substr($0, 4) >= name) { put(); skips = substr($0, 4) == name } }
    !skips { print }
    END { if (!there) put() }' "$old" >"$new"
  { [ "$old" != /dev/null ] || printf '# Reliability\n\nWhat the commands in tests/campaigns/ counted.\n\n'; cat -s "$new"; } >"$new.page"
  cp "$new.page" "$page"
  rm -f "$new" "$new.text" "$new.page"
}

# machine: the machine that the counts were made on, as docs/platforms.md names it.
machine() { echo "$(nproc) cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"; }
