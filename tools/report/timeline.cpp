#include "tools/report/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace duplex::tools::reports {
namespace {

using nlohmann::json;

/// As many as a page stays quick with.
constexpr std::size_t events_at_most = 60000;

const char* const code = R"JS('use strict';
document.querySelectorAll('.timeline').forEach(function (box) {
  var data = JSON.parse(box.querySelector('script').textContent);
  var canvas = box.querySelector('canvas'), told = box.querySelector('.told');
  var rowHeight = 14, left = 120, axis = 22;
  var from = 0, to = data.end, pointers = new Map(), shown = [];
  var height = data.rows.length * rowHeight + axis;
  canvas.style.height = height + 'px';
  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function width() { return canvas.clientWidth; }
  function place(t) { return left + (t - from) / (to - from) * (width() - left); }
  function draw() {
    var scale = window.devicePixelRatio || 1, w = width();
    left = w < 500 ? 84 : 120;
    canvas.width = Math.max(1, Math.round(w * scale)); canvas.height = Math.round(height * scale);
    var g = canvas.getContext('2d');
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, w, height);
    g.font = '11px system-ui, sans-serif'; g.textBaseline = 'middle';
    var colours = ['--c0', '--c1', '--c2', '--c3', '--c4', '--c5'].map(colour);
    var ink = colour('--ink'), faint = colour('--faint'), lines = colour('--line');
    g.strokeStyle = lines;
    var step = Math.pow(10, Math.floor(Math.log10((to - from) / 4)));
    while ((to - from) / step > 8) step *= 2;
    for (var t = Math.ceil(from / step) * step; t < to; t += step) {
      var x = place(t);
      g.beginPath(); g.moveTo(x, 0); g.lineTo(x, height - axis); g.stroke();
      g.fillStyle = faint;
      var label = +(t / 1000).toPrecision(6) + ' ms';
      if (x + 2 + g.measureText(label).width <= w) g.fillText(label, x + 2, height - axis / 2);
    }
    shown = [];
    g.save(); g.beginPath(); g.rect(left, 0, w - left, height - axis); g.clip();
    data.events.forEach(function (e) {
      if (e[1] + e[2] < from || e[1] > to) return;
      var a = place(e[1]), b = place(e[1] + e[2]), y = e[0] * rowHeight + 2;
      g.fillStyle = colours[e[3]];
      g.fillRect(a, y, Math.max(b - a, 0.7), rowHeight - 3);
      shown.push(e);
    });
    g.restore();
    data.rows.forEach(function (row, i) {
      var y = i * rowHeight + rowHeight / 2;
      g.fillStyle = row[1] ? ink : faint;
      g.fillText(row[0], row[1] ? 0 : 8, y, left - 10);
      if (row[1] && i) { g.beginPath(); g.moveTo(0, i * rowHeight); g.lineTo(w, i * rowHeight); g.stroke(); }
    });
    canvas.dataset.drawn = shown.length;
  }
  function zoom(factor, at) {
    var middle = from + (to - from) * (at - left) / Math.max(1, width() - left);
    var size = Math.min(data.end, Math.max(1, (to - from) * factor));
    from = Math.min(Math.max(0, middle - (middle - from) * size / (to - from)), data.end - size);
    to = from + size; draw();
  }
  function move(pixels) {
    var by = -pixels / Math.max(1, width() - left) * (to - from);
    by = Math.min(Math.max(by, -from), data.end - to);
    from += by; to += by; draw();
  }
  function tell(event) {
    var r = canvas.getBoundingClientRect(), x = event.clientX - r.left, row = Math.floor((event.clientY - r.top) / rowHeight);
    var best = null;
    shown.forEach(function (e) {
      if (e[0] !== row) return;
      if (place(e[1]) - 2 <= x && x <= Math.max(place(e[1] + e[2]), place(e[1]) + 1) + 2) best = e;
    });
    told.textContent = best ? data.rows[best[0]][2] + ': ' + data.names[best[4]] + ', ' + (best[2] / 1000).toPrecision(4) +
      ' ms, from ' + (best[1] / 1000).toFixed(3) + ' ms' : '\u00a0';
  }
  canvas.addEventListener('wheel', function (e) {
    if (!e.ctrlKey && !e.shiftKey && !box.contains(document.activeElement)) return;
    e.preventDefault();
    zoom(e.deltaY > 0 ? 1.25 : 0.8, e.clientX - canvas.getBoundingClientRect().left);
  }, { passive: false });
  canvas.addEventListener('pointerdown', function (e) {
    canvas.focus(); canvas.setPointerCapture(e.pointerId); pointers.set(e.pointerId, e); tell(e);
  });
  canvas.addEventListener('pointermove', function (e) {
    var before = pointers.get(e.pointerId);
    if (!before) { tell(e); return; }
    if (pointers.size === 2) {
      var other = Array.from(pointers.values()).find(function (p) { return p.pointerId !== e.pointerId; });
      var a = Math.abs(before.clientX - other.clientX), b = Math.abs(e.clientX - other.clientX);
      if (a > 8 && b > 8) zoom(a / b, (e.clientX + other.clientX) / 2 - canvas.getBoundingClientRect().left);
    } else { move(e.clientX - before.clientX); }
    pointers.set(e.pointerId, e);
  });
  ['pointerup', 'pointercancel'].forEach(function (name) {
    canvas.addEventListener(name, function (e) { pointers.delete(e.pointerId); });
  });
  canvas.addEventListener('keydown', function (e) {
    var middle = left + (width() - left) / 2, part = (width() - left) / 8;
    var act = { '+': function () { zoom(0.7, middle); }, '=': function () { zoom(0.7, middle); },
      '-': function () { zoom(1.4, middle); }, 'ArrowLeft': function () { move(part); }, 'ArrowRight': function () { move(-part); },
      '0': function () { from = 0; to = data.end; draw(); } }[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  box.querySelectorAll('button').forEach(function (button) {
    button.addEventListener('click', function () {
      var middle = left + (width() - left) / 2, what = button.dataset.act;
      if (what === 'in') zoom(0.6, middle); else if (what === 'out') zoom(1.6, middle);
      else if (what === 'left') move((width() - left) / 4); else if (what === 'right') move(-(width() - left) / 4);
      else { from = 0; to = data.end; draw(); }
    });
  });
  window.addEventListener('resize', draw);
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  window.addEventListener('beforeprint', draw);
  draw();
});
)JS";

int colour_of(const std::string& category) {
  if (category == "weights" || category == "map") return 0;
  if (category == "gradient" || category == "map gradient" || category == "factors") return 1;
  if (category == "forward") return 2;
  if (category == "backward") return 3;
  if (category == "server") return 4;
  return 5;
}

/// JSON within a page: nothing in it may end the element that it stands in.
std::string embedded(const json& value) {
  std::string text;
  for (const char c : value.dump()) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

}  // namespace

void add_timeline(Page& page, const TraceData& trace, const std::string& step,
                  const std::string& id) {
  json data{{"rows", json::array()}, {"names", json::array()}, {"events", json::array()}};
  const bool cut = trace.spans.size() > events_at_most;
  const auto first =
      trace.spans.end() - static_cast<std::ptrdiff_t>(std::min(trace.spans.size(), events_at_most));
  const auto name_of = [](const auto& names, const auto& key) {
    const auto found = names.find(key);
    return found == names.end() ? std::string() : found->second;
  };
  // Rows without a span in these steps are left out.
  std::map<std::pair<int, int>, int> rows;
  for (auto span = first; span != trace.spans.end(); ++span) rows[{span->rank, span->row}] = 0;
  int next = 0, last_rank = -1;
  for (auto& [key, row] : rows) {
    if (key.first != last_rank) {
      const std::string rank = name_of(trace.ranks, key.first);
      data["rows"].push_back({rank, 1, rank});
      ++next;
    }
    last_rank = key.first;
    row = next++;
    const std::string name = name_of(trace.rows, key);
    data["rows"].push_back({name, 0, "rank " + std::to_string(key.first) + ", " + name});
  }
  const double begin = first == trace.spans.end() ? 0.0 : first->begin;
  double end = 1.0;
  std::map<std::string, std::size_t> names;
  for (auto span = first; span != trace.spans.end(); ++span) {
    const double at = span->begin - begin;
    end = std::max(end, at + span->takes);
    std::string name = span->name;
    if (span->category == "forward" || span->category == "backward") name += ", " + span->category;
    if (!span->waits_for.empty()) name += " (" + span->waits_for + ")";
    name += ", " + step + " " + std::to_string(span->step);
    const auto number = names.emplace(name, names.size()).first->second;
    if (number == data["names"].size()) data["names"].push_back(name);
    data["events"].push_back({rows[{span->rank, span->row}], std::round(at * 10) / 10,
                              std::round(span->takes * 10) / 10, colour_of(span->category),
                              number});
  }
  data["end"] = end;
  page.html(
      "<div class=\"timeline\" id=\"" + escape(id) +
      "\"><p class=\"screen\"><button data-act=\"in\" aria-label=\"zoom in\">+</button> <button "
      "data-act=\"out\" aria-label=\"zoom out\">&minus;</button> <button data-act=\"left\" "
      "aria-label=\"earlier\">&larr;</button> <button data-act=\"right\" "
      "aria-label=\"later\">&rarr;</button> "
      "<button data-act=\"all\">all</button> <span class=\"told\">&nbsp;</span></p>"
      "<canvas tabindex=\"0\" style=\"width:100%;touch-action:pan-y\" role=\"img\" "
      "aria-label=\"timeline of all ranks\"></canvas><script type=\"application/json\">" +
      embedded(data) + "</script></div>");
  page.html(
      "<p><span style=\"color:var(--c2)\">&#9632;</span> forward <span "
      "style=\"color:var(--c3)\">&#9632;</span> backward <span "
      "style=\"color:var(--c0)\">&#9632;</span> weights <span "
      "style=\"color:var(--c1)\">&#9632;</span> gradients <span "
      "style=\"color:var(--c4)\">&#9632;</span> server <span "
      "style=\"color:var(--c5)\">&#9632;</span> waiting</p>");
  if (cut) page.paragraph("Only the last " + std::to_string(events_at_most) + " events are shown.");
  page.script(code);
}

}  // namespace duplex::tools::reports
