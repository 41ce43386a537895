#!/bin/bash
# Opens the pages that duplex report makes in a browser (headless Chromium), and tests that no script fails, that every
# chart is drawn, and that on a screen 400 pixels wide nothing has to be scrolled sideways.
# Usage: DUPLEX=bin/duplex tests/report.sh
set -eu
cd "$(dirname "$0")/.."

browser=
for name in chromium chromium-browser chromium-headless google-chrome; do
  if command -v "$name" > /dev/null; then browser=$name; break; fi
done
command -v python3 > /dev/null || { echo "skipped: no python3 here (make deps as root installs it)"; exit 77; }
[ -n "$browser" ] || { echo "skipped: no browser here (make deps as root installs chromium)"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# look PAGE CHARTS: opens the page 400 and 1200 pixels wide; fails, and prints why, if something is wrong or fewer charts are
# drawn.
look() {
  python3 - "$1" "$work/looked.html" 400 1200 << 'PYTHON'
import html
import sys
page, out, *widths = sys.argv[1:]
with open(page, encoding="utf-8") as file:
    text = file.read()
for outside in ("http://", "https://", " src=", "@import", "<link"):
    body = text.replace("http://www.w3.org/", "").replace(' src="data:image/png;base64,', "")
    if outside in body:
        sys.exit(f"{page} loads something: {outside}")
catch = "<script>var failed=[];window.onerror=function(m){failed.push(m)};</script>"
look = """<script>window.addEventListener('load', function () { setTimeout(function () {
  var wrong = failed.map(function (m) { return 'script: ' + m; }), drawn = 0;
  document.querySelectorAll('details').forEach(function (d) { d.open = true; });
  document.querySelectorAll('svg.chart').forEach(function (svg) {
    var box = svg.getBoundingClientRect(), name = svg.getAttribute('aria-label');
    var marks = svg.querySelectorAll('path,rect,circle').length;
    if (!(+svg.dataset.drawn > 0)) wrong.push('no data: ' + name);
    else if (marks === 0 || box.width < 200 || box.height < 50) wrong.push('not drawn: ' + name);
    else ++drawn;
    svg.querySelectorAll('path').forEach(function (p) { if (/NaN|Infinity/.test(p.getAttribute('d'))) wrong.push('a path of ' + name); });
    svg.querySelectorAll('text').forEach(function (t) {
      var b = t.getBoundingClientRect();
      if (b.right > box.right + 1 || b.left < box.left - 1) wrong.push('text outside: ' + t.textContent + ' in ' + name);
    });
  });
  document.querySelectorAll('canvas').forEach(function (canvas) {
    var pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, colours = new Set();
    for (var i = 0; i < pixels.length; i += 4) if (pixels[i + 3] === 255) colours.add(pixels[i] * 65536 + pixels[i + 1] * 256 + pixels[i + 2]);
    if (!(+canvas.dataset.drawn > 0) || colours.size < 4) wrong.push('timeline not drawn'); else ++drawn;
  });
  var root = document.documentElement;
  if (root.scrollWidth > @WIDTH@) wrong.push('scrolls sideways: ' + root.scrollWidth + ' of ' + @WIDTH@);
  if (root.clientWidth > @WIDTH@) wrong.push('the window is ' + root.clientWidth + ' wide');
  var pre = parent.document.createElement('pre');
  pre.className = 'looked'; pre.textContent = JSON.stringify({ width: @WIDTH@, wrong: wrong, drawn: drawn });
  parent.document.body.appendChild(pre);
}, 300); });</script>"""
text = text.replace("<head>", "<head>" + catch, 1).replace("</body>", look + "</body>", 1)
# The page is shown in frames, since a window has a least width.
frames = "".join(f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{html.escape(text.replace("@WIDTH@", width))}"></iframe>'
                 for width in widths)
with open(out, "w", encoding="utf-8") as file:
    file.write(f'<!DOCTYPE html><html><head><meta charset="utf-8"></head><body style="white-space:nowrap">{frames}</body></html>')
PYTHON
  timeout -k 2 60 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --window-size=1700,1000 --virtual-time-budget=3000 --dump-dom "file://$work/looked.html" \
    > "$work/dom.html" 2> "$work/log" || { echo "$browser failed: $(tail -1 "$work/log")"; return 1; }
  python3 - "$work/dom.html" "$1" "$2" << 'PYTHON'
import html
import json
import re
import sys
with open(sys.argv[1], encoding="utf-8") as file:
    found = re.findall(r'<pre class="looked">(.*?)</pre>', file.read(), re.S)
if len(found) != 2:
    sys.exit(f"{sys.argv[2]}: the page did not get as far as being looked at")
for result in (json.loads(html.unescape(text)) for text in found):
    page = f"{sys.argv[2]}, {result['width']} pixels wide"
    if result["wrong"]:
        sys.exit(f"{page}: " + "; ".join(result["wrong"][:5]))
    if result["drawn"] < int(sys.argv[3]):
        sys.exit(f"{page}: {result['drawn']} charts, where there should be {sys.argv[3]}")
PYTHON
}

# The pages are about a run with a trace, one alone with a profile and losses, and one that was interrupted.
$DUPLEX simulate --net lenet --t-grad 0.05 --rate 100Mbit/s --workers 4 --batches 40 --trace --logdir "$work/parallel" \
  > /dev/null
$DUPLEX nets lenet | awk '/^---/ { go = 1; next } /^total|^ *$|^---/ { next } go { print $1 }' > "$work/layers"
python3 - "$work" << 'PYTHON'
import base64
import json
import os
import struct
import sys
import zlib
work = sys.argv[1]
with open(os.path.join(work, "layers"), encoding="ascii") as file:
    layers = file.read().split()
alone = os.path.join(work, "alone")
os.makedirs(alone)
def write(name, content):
    with open(os.path.join(alone, name), "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
write("config.json", {"version": 1, "command": "local", "network": "lenet", "title": "LeNet", "input": "1x1x28x28",
                      "classes": 10, "batch": 32, "device": "<b>a device</b> & co.", "host": "<i>lab1</i>", "settings": "a \"setting\"",
                      "data": {"description": "</script><script>alert(1)</script>"}})
write("summary.json", {"version": 1, "command": "local", "steps": 50, "t_grad_s": {"median": 0.05}, "step_s": {"median": 0.06},
                       "accuracy": {"samples": 10, "top1": 0.9, "top5": 0.99}})
write("profile.json", {"version": 1, "network": "LeNet", "layers": [
    {"name": name, "forward_s": 0.001 * i, "backward_s": 0.002 * i} for i, name in enumerate(layers)]})
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 96, 96, 8, 0, 0, 0, 0)) +
       chunk(b"IDAT", zlib.compress(b"".join(bytes([0, *range(96)]) for _ in range(96)))) + chunk(b"IEND", b""))
def evaluation(classes):
    return {"version": 1, "network": "lenet", "title": "LeNet", "weights": "weights", "steps": "50", "data": "</script><script>alert(1)</script>",
            "part": "test", "test_fraction": 0.2, "batch": 8, "device": "cpu",
            "accuracy": {"samples": 10, "top1": 0.9, "top5": 0.99, "loss": 0.3},
            "classes": [{"name": f"<i>{i:03}</i>.a-name-that-is-long-and-has-no-space", "images": 1000, "said": 1000, "right": 900,
                         "precision": 0.9, "recall": 0.9} for i in range(classes)],
            "confusion": [{"class": i, "said": j, "images": 900 if i == j else 100 // classes} for i in range(classes) for j in range(classes)],
            "worst": [{"image": "name", "class": i % classes, "said": (i + 1) % classes, "probability": 0.9, "class_probability": 0.01,
                       "loss": 4.6, "png": base64.b64encode(png).decode()} for i in range(24)]}
write("evaluation.json", evaluation(20))
rows = [f"{i},0,{2.3 / (1 + i)},0.01,0.06,0.001,0.05,0,0.009" for i in range(50)]
header = "step,epoch,loss,rate,total_s,data_s,gradient_s,await_s,push_s"
write("metrics.csv", "\n".join([header, *rows]) + "\n")
write("accuracy.csv", "step,epoch,samples,top1,top5,loss\n" +
      "".join(f"{10 * i},{i},10,{1 - 0.5 / i},{1 - 0.1 / i},{1 / i}\n" for i in range(1, 6)))
accuracy = os.path.join(work, "accuracy")
os.makedirs(accuracy)
with open(os.path.join(accuracy, "accuracy.json"), "w", encoding="utf-8") as file:
    json.dump({"version": 1, "about": ["<b>a machine</b> & co."], "columns": ["top-1 in the end, %", "s to the target"], "networks": [
        {"name": name, "about": "<i>some</i> images", "conclusion": "One machine.", "target": 80, "ways": [
            {"name": f"<u>way</u> {way}", "flags": "</dl><script>alert(1)</script>", "cells": ["88 ± 1", "1 of 3 seeds"], "points": [
                {"seconds": 90.0 * way * i, "megabytes": 3000.0 * way * i, "top1": 99.9 - 50 / i / (1 + way), "deviation": 3.0 / i}
                for i in range(1, 9)]} for way in range(6)]} for name in ("lenet", "resnet34")]}, file)
PYTHON
cp -r "$work/alone" "$work/many"
python3 - "$work/many/evaluation.json" << 'PYTHON'
import json
import sys
with open(sys.argv[1], encoding="utf-8") as file:
    evaluation = json.load(file)
evaluation["classes"] = [dict(evaluation["classes"][0], name=f"{i:03}.a-name-that-is-long") for i in range(257)]
evaluation["confusion"] = [{"class": i, "said": (i + 1) % 257, "images": i + 1} for i in range(257)]
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(evaluation, file)
PYTHON
cp -r "$work/parallel" "$work/interrupted"
rm "$work/interrupted/summary.json" "$work"/interrupted/rank-*.json "$work/interrupted/trace.json"
for file in metrics.csv ledger-0.csv; do  # The last line is cut off.
  head -c -9 "$work/parallel/$file" > "$work/interrupted/$file"
done

$DUPLEX report "$work/alone" "$work/parallel" --output "$work/runs.html" > /dev/null
$DUPLEX report "$work/many" --output "$work/many.html" > /dev/null
$DUPLEX report "$work/accuracy" --output "$work/accuracy.html" > /dev/null
$DUPLEX report "$work/interrupted" --output "$work/interrupted.html" > /dev/null 2> "$work/told"
grep -q 'interrupted; reported as far as it came' "$work/told" || { echo "an interrupted run is not told"; exit 1; }
grep -q 'was interrupted' "$work/interrupted.html" || { echo "its page does not say so"; exit 1; }

# This page of the thesis has simulations alone.
OUT=$work/thesis PAGE=$work/thesis.html DUPLEX=$DUPLEX SIMULATE_ONLY=1 FIGURES='6.3 6.8' python3 tools/thesis > /dev/null 2>&1 ||
  { echo "tools/thesis failed"; exit 1; }

look "$work/runs.html" 9
look "$work/many.html" 5
look "$work/accuracy.html" 4
look "$work/interrupted.html" 2
look "$work/thesis.html" 22
