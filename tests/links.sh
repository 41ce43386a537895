#!/bin/bash
# Tests that every link of the documentation leads to a file and a heading that are there, and that docs/decisions/README.md
# has a row for every record. Prints a line for every breach.
# Usage: tests/links.sh [ROOT]    Without ROOT: tries itself on breaches made for it, then looks at this checkout.
set -eu
command -v python3 > /dev/null || { echo "skipped: no python3 here (make deps as root installs it)"; exit 77; }
cd "$(dirname "$0")/.."

check() {
  python3 - "$1" << 'PYTHON'
import os
import re
import sys

os.chdir(sys.argv[1])
pages = sorted(os.path.join(folder, name)[2:] for folder, folders, names in os.walk(".") for name in names
               if name.endswith(".md") and not re.match(r"\./(\.|build|runs|bin)", folder + "/"))


def headings(page):
    """Returns the anchors of a page's headings, as GitHub makes them of their text."""
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.S | re.M)
    found = []
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.append(anchor if anchor not in found else f"{anchor}-{found.count(anchor)}")
    return found + re.findall(r'<a (?:id|name)="([^"]+)"', text)


broken = []
for page in pages:
    with open(page, encoding="utf-8") as file:
        text = file.read()
    # Code has no links, be it in lines of its own or within one.
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    text = re.sub(r"(?m)^    .*$", "", text)
    for link in re.findall(r"(?<!!)\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "code", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(target):
            broken.append(f"{page}: {link}: there is no {target}")
        elif anchor and target.endswith(".md") and anchor not in headings(target):
            broken.append(f"{page}: {link}: {target} has no such heading")
records = "docs/decisions/README.md"
if os.path.exists(records):
    with open(records, encoding="utf-8") as file:
        rows = file.read()
    for page in pages:
        if os.path.dirname(page) == os.path.dirname(records) and page != records:
            with open(page, encoding="utf-8") as file:
                count = len(re.findall(r"^## ", file.read(), re.M))
            for anchor in headings(page)[1:] if count else []:
                if f"({os.path.basename(page)}#{anchor})" not in rows:
                    broken.append(f"{records}: there is no row for {os.path.basename(page)}#{anchor}")
print("\n".join(broken), end="\n" if broken else "")
sys.exit(bool(broken))
PYTHON
}

# expect TEXT: the tree in $made must be found at fault with this; '': it must be found faultless.
expect() {
  local found code=0
  found=$(check "$made") || code=$?
  rm -rf "$made"
  if [ "$1" ]; then [[ $code = 1 && $found == *"$1"* ]]; else [[ $code = 0 && -z $found ]]; fi ||
    { echo "this test is blind to '$1', or finds fault where none is: exit code $code, $found" >&2; exit 1; }
}
fresh() { made=$(mktemp -d); mkdir -p "$made/docs/decisions"; printf '# Title\n\n## A `b` of C++\n' > "$made/docs/page.md"; }

if [ $# -gt 0 ]; then
  check "$1"
  exit
fi
fresh; echo '[x](docs/page.md#a-b-of-c) `[x](y)` [z](https://example.org/#a)' > "$made/README.md"; expect ''
fresh; echo '[x](docs/other.md)' > "$made/README.md"; expect 'README.md: docs/other.md: there is no docs/other.md'
fresh; echo '[x](docs/page.md#a-c)' > "$made/README.md"; expect 'docs/page.md has no such heading'
fresh; echo '# All' > "$made/docs/decisions/README.md"; printf '# One\n\n## It is so\n' > "$made/docs/decisions/one.md"
expect 'there is no row for one.md#it-is-so'
check .
