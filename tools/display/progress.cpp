#include "tools/display/progress.h"

#include <cstdio>

#include "core/clock.h"

namespace duplex::tools {
namespace {

/// Seconds between two texts of a line that is rewritten. Behind launch there may be a slow link.
double refreshing(const Display& display) {
  return display.kind == Display::Kind::launched ? 0.25 : 0.1;
}

}  // namespace

Progress::Progress(const Display& display, double interval)
    : display_(display),
      interval_ns_(
          static_cast<std::int64_t>((display.rewrites() ? refreshing(display) : interval) * 1e9)),
      last_ns_(clock_ns()) {}

Progress::~Progress() {
  clear();
}

bool Progress::due() const {
  return display_.kind != Display::Kind::none && clock_ns() - last_ns_ >= interval_ns_;
}

void Progress::show(const std::string& line) {
  last_ns_ = clock_ns();
  if (display_.kind == Display::Kind::none) return;
  if (!display_.rewrites()) {
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  shown_ = line.substr(0, display_.width());
  std::fprintf(stderr, "%s%s%s", rewriting, shown_.c_str(), rewritten);
  std::fflush(stderr);
}

void Progress::finish() {
  // Something else may have been written over it.
  if (!shown_.empty()) std::fprintf(stderr, "%s%s%s\n", rewriting, shown_.c_str(), rewritten);
  shown_.clear();
}

void Progress::clear() {
  if (!shown_.empty()) std::fprintf(stderr, "%s%s", rewriting, rewritten);
  std::fflush(stderr);
  shown_.clear();
}

}  // namespace duplex::tools
