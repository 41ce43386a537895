// One self-contained HTML page: text, tables and figures, readable on a phone, in print, light and
// dark. It loads nothing.
#pragma once
#include <string>
#include <vector>

#include "tools/text/escape.h"

namespace duplex::tools::reports {

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  /// Text is escaped; what says html is not.
  void heading(int level, const std::string& text, const std::string& id = "");
  void paragraph(const std::string& text);
  void html(const std::string& html) { body_ += html + "\n"; }
  /// The first column is text, the others are figures, unless `text_columns` says how many are
  /// text. A cell that begins with "!" is a verdict that asks for attention, with "=" one that does
  /// not.
  void table(const std::vector<std::string>& columns,
             const std::vector<std::vector<std::string>>& rows, std::size_t text_columns = 1);
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
