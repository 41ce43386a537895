#include "tools/deploy/board.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/clock.h"

namespace duplex::tools {
namespace {

/// Seconds between lines of what is going on, where there is no terminal.
constexpr double plain_interval = 15.0;
constexpr double terminal_interval = 0.2;

}  // namespace

Board::Board(const std::vector<std::string>& machines)
    : machines_(machines),
      shown_(machines.size()),
      terminal_(::isatty(STDERR_FILENO) != 0),
      last_ns_(clock_ns()) {}

Board::~Board() {
  const std::lock_guard<std::mutex> lock(mutex_);
  clear();
}

void Board::show(std::size_t machine, const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shown_[machine] = text;
}

void Board::done(std::size_t machine, const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shown_[machine].clear();
  clear();
  std::fprintf(stderr, "launch: %s: %s\n", machines_[machine].c_str(), text.c_str());
  draw();
}

void Board::refresh() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (seconds(clock_ns() - last_ns_) < (terminal_ ? terminal_interval : plain_interval)) return;
  clear();
  draw();
  last_ns_ = clock_ns();
  if (terminal_) return;
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (!shown_[i].empty())
      std::fprintf(stderr, "launch: %s: %s\n", machines_[i].c_str(), shown_[i].c_str());
}

/// Removes the lines that are rewritten. The mutex is held.
void Board::clear() {
  if (drawn_ > 0) std::fprintf(stderr, "\x1b[%zuA\x1b[J", drawn_);
  drawn_ = 0;
  std::fflush(stderr);
}

/// Writes them, as many as the terminal has room for. The mutex is held.
void Board::draw() {
  if (!terminal_) return;
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  const std::size_t width = known ? size.ws_col - 1U : 79U;
  const std::size_t height = known && size.ws_row > 1 ? size.ws_row - 1U : 23U;
  for (std::size_t i = 0; i < machines_.size() && drawn_ < height; ++i) {
    if (shown_[i].empty()) continue;
    const std::string line = "launch: " + machines_[i] + ": " + shown_[i];
    std::fprintf(stderr, "%s\n", line.substr(0, width).c_str());
    ++drawn_;
  }
  std::fflush(stderr);
}

}  // namespace duplex::tools
