// Lines for the user on standard error, beside a line of progress that is rewritten.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <string>

namespace duplex::tools {

/// Writes a line. On a terminal it takes the place of one that is being rewritten, which is shown
/// again below. Any thread may call it.
inline void say(const std::string& line) {
  const char* const over = ::isatty(STDERR_FILENO) != 0 ? "\r\x1b[K" : "";
  std::fprintf(stderr, "%s%s\n", over, line.c_str());
}

}  // namespace duplex::tools
