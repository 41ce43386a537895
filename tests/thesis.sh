#!/bin/bash
# Tests what tools/thesis makes of a run's ledgers, and that the page in docs/results says of the thesis's statements
# what the points beside it say today. The charts are in tests/report.sh.
# Usage: DUPLEX=bin/duplex tests/thesis.sh
set -eu
cd "$(dirname "$0")/.."
command -v python3 > /dev/null || { echo "skipped: no python3 here (make deps as root installs it)"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A central server and two workers. Weights leave from 1 s on; the last gradient is there after 6 s.
python3 - "$work" << 'PYTHON'
import os
import sys
sys.path[:0] = ["tools", "tools/thesis"]
import diagrams
from lab.machine import Failed

HEADER = "rank,direction,peer,kind,step,parameter,chunk,bytes,queued_ns,first_ns,last_ns"
ROWS = {0: ["sent,1,weights,3,1000,2900", "sent,2,weights,3,1500,3400", "received,1,gradient,3,5000,5600",
            "received,1,gradient,3,5600,6000", "received,2,gradient,3,5100,5900", "received,2,gradient,4,7000,9000",
            "sent,1,finish,3,100,9000"],
        1: ["received,0,weights,3,1100,2000", "received,0,weights,3,2000,3000", "sent,0,gradient,3,4900,5500"],
        2: ["received,0,weights,3,1600,3500", "received,0,weights,2,100,200", "sent,0,gradient,3,5000,5500"]}
paths = []
for rank, rows in ROWS.items():
    paths.append(os.path.join(sys.argv[1], f"ledger-{rank}.csv"))
    with open(paths[-1], "w", encoding="ascii") as file:
        print(HEADER, file=file)
        for row in rows:
            direction, peer, kind, step, first, last = row.split(",")
            print(f"{rank},{direction},{peer},{kind},{step},0,0,32,0,{first}000000,{last}000000", file=file)
found = diagrams.iteration(paths, 3)
expected = {"step": 3, "seconds": 5.0,
            "ranks": [{"weights": None, "gradients": None}, {"weights": [0.1, 2.0], "gradients": [4.0, 5.0]},
                      {"weights": [0.6, 2.5], "gradients": [4.1, 4.9]}]}
if found != expected:
    sys.exit(f"an iteration is {found}, not {expected}")
try:
    diagrams.iteration(paths, 8)
    sys.exit("a step that no ledger has is no failure")
except Failed as failure:
    if "no weights and gradients of step 8" not in str(failure):
        sys.exit(f"a step that no ledger has: {failure}")
PYTHON

$DUPLEX report docs/results/thesis --output "$work/page.html" > /dev/null
python3 - docs/results/thesis.html "$work/page.html" << 'PYTHON'
import difflib
import re
import sys

def statements(path):
    """Returns the text of the statements and verdicts on a page, a line each."""
    with open(path, encoding="utf-8") as file:
        found = re.search(r'id="statements">.*?<dl>(.*?)</dl>', file.read(), re.S)
    if not found:
        sys.exit(f"{path} has no statements")
    return re.sub("<[^>]*>", "", found.group(1).replace("<dd>", "\n")).splitlines()

kept, now = (statements(path) for path in sys.argv[1:])
if len(now) < 40:
    sys.exit(f"only {len(now)} lines of statements")
if kept != now:
    sys.exit("docs/results/thesis.html is not what its points say; make it again:\n"
             "  bin/duplex report docs/results/thesis --output docs/results/thesis.html\n" +
             "\n".join(difflib.unified_diff(kept, now, lineterm="", n=0)))
PYTHON
