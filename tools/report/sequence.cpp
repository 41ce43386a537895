#include "tools/report/sequence.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "net/ledger/ledger_row.h"
#include "net/wire/frame.h"
#include "tools/report/chart.h"
#include "tools/report/page.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools::reports {
namespace {

std::vector<LedgerFrame> read_ledger(const std::string& path, bool complete) {
  const std::string weights = net::name_of(net::FrameKind::weights),
                    gradient = net::name_of(net::FrameKind::gradient);
  std::vector<LedgerFrame> frames;
  for (const net::LedgerRow& row : read_rows<net::LedgerRow>(path, complete)) {
    if (row.kind != weights && row.kind != gradient) continue;
    frames.push_back({row.peer, row.sent, row.kind == weights, row.step, row.parameter, row.bytes,
                      static_cast<double>(row.first_ns) * 1e-9,
                      static_cast<double>(row.last_ns) * 1e-9});
  }
  return frames;
}

/// A span reaches from the first of some frames to the last.
struct Span {
  double from = std::numeric_limits<double>::infinity(),
         to = -std::numeric_limits<double>::infinity();
  void add(double first, double last) {
    from = std::min(from, first);
    to = std::max(to, last);
  }
  bool any() const { return to >= from; }
};

/// The transfers of one worker in an iteration: of the weights that it receives, and of its
/// gradients to their owners.
struct Part {
  Span weights, gradients;
};

constexpr double width = 480, names = 74, right = 8, row = 30, top = 30;

std::string at(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string box(double from, double to, double y, double height, const char* colour,
                const std::string& title) {
  return "<rect x=\"" + at(from) + "\" y=\"" + at(y) + "\" width=\"" +
         at(std::max(to - from, 0.8)) + "\" height=\"" + at(height) + "\" fill=\"" + colour +
         "\"><title>" + escape(title) + "</title></rect>";
}

std::string words(double x, double y, const std::string& text, const char* anchor,
                  const char* type = "") {
  return "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\" text-anchor=\"" + anchor + "\" class=\"" +
         type + "\">" + escape(text) + "</text>";
}

std::string milliseconds(double seconds) {
  return number_text(seconds * 1e3) + " ms";
}

}  // namespace

std::vector<std::vector<LedgerFrame>> read_ledgers(const std::string& directory) {
  std::vector<std::vector<LedgerFrame>> ledgers;
  for (int rank = 0;; ++rank) {
    const std::string path = directory + "/" + ledger_file(rank);
    if (!std::filesystem::exists(path)) return ledgers;
    ledgers.push_back(
        read_ledger(path, std::filesystem::exists(directory + "/" + rank_file(rank))));
  }
}

std::uint64_t step_in_all(const std::vector<std::vector<LedgerFrame>>& ledgers,
                          std::uint64_t wanted) {
  std::map<std::uint64_t, std::size_t> found;  // By step: ledgers that have it.
  std::size_t with_frames = 0;
  for (const auto& ledger : ledgers) {
    std::set<std::uint64_t> weights, gradients;
    for (const LedgerFrame& frame : ledger)
      (frame.weights ? weights : gradients).insert(frame.step);
    with_frames += ledger.empty() ? 0U : 1U;
    for (const std::uint64_t step : weights)
      if (gradients.count(step) > 0) ++found[step];
  }
  std::uint64_t before = wanted;
  for (const auto& [step, having] : found) {
    if (having < with_frames) continue;
    if (step >= wanted) return step;
    before = step;
  }
  return before;
}

Iteration sequence_diagram(const std::vector<std::vector<LedgerFrame>>& ledgers, int server,
                           std::uint64_t step, const std::string& title) {
  std::vector<Part> parts(ledgers.size());
  Span all;
  for (std::size_t rank = 0; rank < ledgers.size(); ++rank) {
    for (const LedgerFrame& frame : ledgers[rank]) {
      if (frame.step != step) continue;
      Part& part = parts[rank];
      if (frame.weights && !frame.sent) part.weights.add(frame.first, frame.last);
      // When a gradient is there, its receiver knows: the sender hands it to the kernel before.
      if (!frame.weights && !frame.sent && static_cast<std::size_t>(frame.peer) < parts.size()) {
        Part& sender = parts[static_cast<std::size_t>(frame.peer)];
        sender.gradients.add(frame.first, frame.last);
      }
      if (frame.weights && frame.sent) all.add(frame.first, frame.first);
      if (!frame.weights && !frame.sent) all.add(frame.last, frame.last);
    }
  }
  const std::size_t shown = parts.size();
  const double height = top + row * static_cast<double>(shown) + 40;
  std::size_t drawn = 0;
  std::string body;
  const auto x = [&](double time) {
    return names + (time - all.from) / std::max(all.to - all.from, 1e-9) * (width - names - right);
  };
  for (std::size_t rank = 0; rank < shown; ++rank) {
    const double y = top + row * static_cast<double>(rank);
    const bool serves = static_cast<int>(rank) == server;
    const std::string who = serves ? "server" : "worker " + std::to_string(rank);
    body += words(0, y + 18, who, "start");
    body += "<line x1=\"" + at(names) + "\" x2=\"" + at(width - right) + "\" y1=\"" +
            at(y + row - 2) + "\" y2=\"" + at(y + row - 2) + "\" stroke=\"var(--line)\"/>";
    if (serves) {
      // Each worker's transfer as a band of its own.
      const double band = (row - 8) / static_cast<double>(std::max<std::size_t>(shown - 1, 1));
      double next = y + 2;
      for (std::size_t worker = 0; worker < shown; ++worker) {
        const Part& part = parts[worker];
        if (static_cast<int>(worker) == server) continue;
        for (const auto& [span, colour, what] :
             {std::tuple{part.weights, "var(--c0)", "weights to"},
              std::tuple{part.gradients, "var(--c1)", "gradients of"}})
          if (span.any()) {
            body += box(x(span.from), x(span.to), next, band - 0.6, colour,
                        std::string(what) + " worker " + std::to_string(worker) + ", " +
                            milliseconds(span.to - span.from));
            ++drawn;
          }
        next += band;
      }
      continue;
    }
    const Part& part = parts[rank];
    const auto draw = [&](const Span& span, const char* colour, const std::string& what,
                          double from, double high) {
      if (!span.any()) return;
      body += box(x(span.from), x(span.to), from, high, colour,
                  who + " " + what + ", " + milliseconds(span.to - span.from));
      ++drawn;
    };
    draw(part.weights, "var(--c0)", "receives weights", y + 2, row - 8);
    draw(part.gradients, "var(--c1)", "sends gradients", y + 2, row - 8);
    if (part.weights.any() && part.gradients.any() && part.gradients.from > part.weights.to) {
      Span computing;
      computing.add(part.weights.to, part.gradients.from);
      draw(computing, "var(--c2)", "computes", y + 6, row - 16);
    }
  }
  const double axis = top + row * static_cast<double>(shown) + 4;
  for (const double tick : ticks(0.0, (all.to - all.from) * 1e3, 6)) {
    const double place = x(all.from + tick * 1e-3);
    if (!all.any() || place > width - right + 1) break;
    body += words(place, axis + 10, number_text(tick), "middle", "faint");
  }
  body += words(width - right, axis + 28, "ms", "end", "faint");
  double legend = names;
  for (const auto& [colour, what] :
       {std::pair{"var(--c0)", "weights"}, std::pair{"var(--c2)", "computing"},
        std::pair{"var(--c1)", "gradients"}}) {
    body += box(legend, legend + 12, axis + 18, 11, colour, what);
    body += words(legend + 17, axis + 28, what, "start");
    legend += 100;
  }
  Iteration iteration;
  iteration.seconds = all.any() ? all.to - all.from : 0.0;
  iteration.svg = "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 " + at(width) + " " +
                  at(height) + "\" aria-label=\"" + escape(title) + "\" data-drawn=\"" +
                  std::to_string(drawn) + "\">" + words(0, 14, title, "start") + body + "</svg>";
  return iteration;
}

}  // namespace duplex::tools::reports
