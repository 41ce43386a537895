// One self-contained HTML page: text, tables and figures, readable on a phone, in print, light and
// dark. It loads nothing.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/text/escape.h"

namespace duplex::tools::reports {

/// A page's file begins with this.
constexpr std::string_view page_begin = "<!DOCTYPE html>";

/// A cell of a table: a text, and whether it is a verdict.
struct Cell {
  enum class Mark { none, good, bad };  ///< bad: it asks for attention.

  // A text alone is a cell, so that rows can be written as lists of texts.
  Cell(std::string text, Mark mark = Mark::none) : text(std::move(text)), mark(mark) {}
  Cell(const char* text) : text(text) {}

  std::string text;
  Mark mark = Mark::none;
};

class Page {
 public:
  using Row = std::vector<Cell>;

  explicit Page(std::string title) : title_(std::move(title)) {}

  /// Text is escaped; what says html is not.
  void heading(int level, const std::string& text, const std::string& id = "");
  void paragraph(const std::string& text);
  void html(const std::string& html) { body_ += html + "\n"; }
  /// The first column is text, the others are figures, unless `text_columns` says how many are
  /// text.
  void table(const std::vector<std::string>& columns, const std::vector<Row>& rows,
             std::size_t text_columns = 1);
  /// An SVG with a caption under it.
  void figure(const std::string& svg, const std::string& caption, const std::string& id = "");
  /// Hides all that follows, until end_fold(), until the reader asks for it; in print it is shown.
  void begin_fold(const std::string& summary);
  void end_fold() { body_ += "</details>\n"; }

  /// JavaScript, at the page's end; once, however often it is given.
  void script(const std::string& code);
  /// Has the browser load the page again every so many seconds.
  void reload_every(double seconds) { reload_ = seconds; }
  std::string str() const;

 private:
  std::string title_, body_;
  double reload_ = 0.0;  ///< 0: never.
  std::vector<std::string> scripts_;
};

}  // namespace duplex::tools::reports
