#include "tools/report/thesis/sequence.h"

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include "tools/report/chart.h"
#include "tools/report/page.h"

namespace duplex::tools::reports {
namespace {

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

std::string sequence_diagram(const Iteration& iteration, int server, const std::string& title) {
  const std::size_t shown = iteration.ranks.size();
  const double height = top + row * static_cast<double>(shown) + 40;
  std::size_t drawn = 0;
  std::string body;
  const auto x = [&](double time) {
    return names + time / std::max(iteration.seconds, 1e-9) * (width - names - right);
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
        const RankTransfers& of = iteration.ranks[worker];
        if (static_cast<int>(worker) == server) continue;
        for (const auto& [time, colour, what] :
             {std::tuple{of.weights, "var(--c0)", "weights to"},
              std::tuple{of.gradients, "var(--c1)", "gradients of"}})
          if (time) {
            body += box(x(time->from), x(time->to), next, band - 0.6, colour,
                        std::string(what) + " worker " + std::to_string(worker) + ", " +
                            milliseconds(time->to - time->from));
            ++drawn;
          }
        next += band;
      }
      continue;
    }
    const RankTransfers& of = iteration.ranks[rank];
    const auto draw = [&](const TransferTime& time, const char* colour, const std::string& what,
                          double from, double high) {
      body += box(x(time.from), x(time.to), from, high, colour,
                  who + " " + what + ", " + milliseconds(time.to - time.from));
      ++drawn;
    };
    if (of.weights) draw(*of.weights, "var(--c0)", "receives weights", y + 2, row - 8);
    if (of.gradients) draw(*of.gradients, "var(--c1)", "sends gradients", y + 2, row - 8);
    if (of.weights && of.gradients && of.gradients->from > of.weights->to)
      draw({of.weights->to, of.gradients->from}, "var(--c2)", "computes", y + 6, row - 16);
  }
  const double axis = top + row * static_cast<double>(shown) + 4;
  for (const double tick : ticks(0.0, iteration.seconds * 1e3, 6)) {
    const double place = x(tick * 1e-3);
    if (place > width - right + 1) break;
    body += words(place, axis + 10, number_text(tick), "middle", "faint");
  }
  body += words(width - right, axis + 28, "ms", "end", "faint");
  double legend = names;
  for (const auto& [colour, what] :
       {std::pair{"var(--c0)", "weights"}, std::pair{"var(--c2)", "computing"},
        std::pair{"var(--c1)", "gradients"}}) {
    body += box(legend, legend + 12, axis + 18, 11, colour, what);
    body += words(legend + 17, axis + 28, what, "start");
    legend += 120;
  }
  return "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 " + at(width) + " " + at(height) +
         "\" aria-label=\"" + escape(title) + "\" data-drawn=\"" + std::to_string(drawn) + "\">" +
         words(0, 14, title, "start") + body + "</svg>";
}

}  // namespace duplex::tools::reports
