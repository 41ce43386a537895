#include "tools/display/progress_bar.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// The fewest characters of a bar, with its brackets; below, it goes.
constexpr std::size_t shortest_bar = 8;

/// Every fourth digit is about what a loss tells; one that grows beyond all measure must not push
/// the rest out.
std::string loss_text(double loss) {
  if (std::abs(loss) < 1e4) return fixed(loss, 4);
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", loss);
  return text;
}

std::string rate_text(double images) {
  return images < 100.0 ? fixed(images, 1) : grouped(std::llround(images));
}

std::string memory_text(std::uint64_t bytes) {
  constexpr double mebi = 1024.0 * 1024.0;
  const double mebibytes = static_cast<double>(bytes) / mebi;
  return mebibytes < 10000.0 ? fixed(mebibytes, 0) + " MiB" : fixed(mebibytes / 1024.0, 1) + " GiB";
}

std::string bar_of(double part, std::size_t length) {
  const std::size_t inner = length - 2;
  const auto full = std::min(inner, static_cast<std::size_t>(part * static_cast<double>(inner)));
  std::string bar = "[" + std::string(full, '=');
  if (full < inner) bar += '>' + std::string(inner - full - 1, ' ');
  return bar + "]";
}

/// A piece of the line, and how soon it goes where there is no room: the highest first.
struct Piece {
  std::string text;
  int goes;
};

std::size_t length_of(const std::vector<Piece>& pieces) {
  std::size_t length = 0;
  for (const Piece& piece : pieces) length += piece.text.size() + 1;
  return length;
}

}  // namespace

std::string progress_bar(const TrainingProgress& progress, std::size_t width) {
  const std::string steps = grouped(static_cast<std::int64_t>(progress.steps));
  const std::string done = grouped(static_cast<std::int64_t>(progress.done));
  std::vector<Piece> pieces{
      {std::string(steps.size() - std::min(steps.size(), done.size()), ' ') + done + "/" + steps,
       0}};
  if (progress.epoch > 0) pieces.push_back({"epoch " + std::to_string(progress.epoch), 6});
  if (progress.loss) pieces.push_back({"loss " + loss_text(*progress.loss), 1});
  if (progress.top1) pieces.push_back({"top-1 " + fixed(100.0 * *progress.top1, 1) + "%", 3});
  pieces.push_back({rate_text(progress.images) + " images/s", 4});
  pieces.push_back({clock_text(progress.left) + " left", 2});
  if (progress.memory_bytes > 0) pieces.push_back({memory_text(progress.memory_bytes), 5});
  while (pieces.size() > 1 && shortest_bar + length_of(pieces) > width)
    pieces.erase(std::max_element(pieces.begin(), pieces.end(),
                                  [](const Piece& a, const Piece& b) { return a.goes < b.goes; }));
  const std::size_t length = length_of(pieces);
  const double part = static_cast<double>(progress.done) /
                      static_cast<double>(std::max<std::uint64_t>(progress.steps, 1));
  std::string line;
  if (length + shortest_bar <= width) line = bar_of(std::min(part, 1.0), width - length);
  for (const Piece& piece : pieces) line += (line.empty() ? "" : " ") + piece.text;
  return line.substr(0, width);
}

}  // namespace duplex::tools
