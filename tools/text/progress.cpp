#include "tools/text/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "core/clock.h"

namespace duplex::tools {

Progress::Progress(double interval)
    : terminal_(isatty(STDERR_FILENO) != 0),
      interval_ns_(static_cast<std::int64_t>((terminal_ ? 0.1 : interval) * 1e9)),
      last_ns_(clock_ns()) {}

Progress::~Progress() {
  finish();
}

bool Progress::due() const {
  return clock_ns() - last_ns_ >= interval_ns_;
}

void Progress::show(const std::string& line) {
  last_ns_ = clock_ns();
  if (!terminal_) {
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  const std::size_t width = known ? size.ws_col - 1U : 79U;
  std::fprintf(stderr, "\r%s\x1b[K", line.substr(0, width).c_str());
  std::fflush(stderr);
  open_ = true;
}

void Progress::finish() {
  if (open_) std::fputc('\n', stderr);
  open_ = false;
}

std::string clock_text(double seconds) {
  const auto total = static_cast<long>(seconds);
  char text[32];
  if (total >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", total / 3600, total / 60 % 60, total % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld:%02ld", total / 60, total % 60);
  }
  return text;
}

}  // namespace duplex::tools
