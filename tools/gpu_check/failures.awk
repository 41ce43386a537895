# Prints the failures in GoogleTest's log: the first lines of each, with the expected and the actual value; and the test
# in which the log stops if it is not complete.
BEGIN { most_tests = 15; most_lines = 7 }
function show(name,   i) {
  if (++failures > most_tests) return
  print name
  for (i = 1; i <= lines && i <= most_lines; i++) print "  " substr(line[i], 1, 160)
  if (lines > most_lines) print "  ... (" lines - most_lines " more lines)"
}
/^\[ RUN      \]/ { running = substr($0, 14); lines = 0; next }
/^\[       OK \]|^\[  SKIPPED \]/ { running = ""; lines = 0; next }
/^\[  FAILED  \].* ms\)$/ { show(running); running = ""; lines = 0; next }
/^\[/ { next }
/^ *$/ { next }
running != "" { line[++lines] = $0 }
running == "" { last = $0 }
END {
  if (running != "") {
    print "it ended in " running
    for (i = lines > most_lines ? lines - most_lines + 1 : 1; i <= lines; i++) print "  " substr(line[i], 1, 160)
  } else if (!failures) {
    print last
  }
  if (failures > most_tests) print "... and " failures - most_tests " more tests"
}
