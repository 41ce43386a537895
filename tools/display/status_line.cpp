#include "tools/display/status_line.h"

#include <cstring>

#include "tools/display/progress.h"

namespace duplex::tools {

void StatusLine::draw() const {
  if (shown_.empty()) return;
  std::fprintf(stderr, "%s%s%s", rewriting, shown_.substr(0, display_.width()).c_str(), rewritten);
  std::fflush(stderr);
}

void StatusLine::line(std::FILE* to, const std::string& text) {
  if (!shown_.empty()) {
    std::fprintf(stderr, "%s%s", rewriting, rewritten);
    std::fflush(stderr);
  }
  std::fprintf(to, "%s\n", text.c_str());
  std::fflush(to);
  draw();
}

void StatusLine::show(const std::string& text) {
  if (!display_.rewrites()) return;
  if (text.empty()) clear();
  shown_ = text;
  draw();
}

void StatusLine::keep() {
  if (!shown_.empty()) std::fputc('\n', stderr);
  shown_.clear();
}

void StatusLine::clear() {
  if (!shown_.empty()) std::fprintf(stderr, "%s%s", rewriting, rewritten);
  std::fflush(stderr);
  shown_.clear();
}

bool take_piece(std::string& text, Piece& piece) {
  const std::size_t end = text.find('\n');
  if (text.rfind(rewriting, 0) == 0) {
    const std::size_t last = text.find(rewritten);
    if (last == std::string::npos && end == std::string::npos) return false;
    if (last < end) {
      const std::size_t begin = std::strlen(rewriting);
      piece = {Piece::Kind::rewritten, text.substr(begin, last - begin)};
      text.erase(0, last + std::strlen(rewritten));
      return true;
    }
  }
  if (end == std::string::npos) return false;
  piece = {Piece::Kind::line, text.substr(0, end)};
  text.erase(0, end + 1);
  return true;
}

}  // namespace duplex::tools
