// Rows of a CSV file: numbers and words between commas, under a line with the columns' names.
// A row is described once, by a function over any of these classes, so that what is written is
// what is read:
//   template <class Fields> void describe(Fields& f, Row& r) { f.integer("step", r.step); ... }
#pragma once
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace duplex {

/// Collects the names of the columns, with commas between them.
class CsvColumns {
 public:
  template <class Integer>
  void integer(std::string_view name, Integer&) {
    add(name);
  }
  void number(std::string_view name, double&) { add(name); }
  void number(std::string_view name, std::optional<double>&) { add(name); }
  void decimals(std::string_view name, double&, int) { add(name); }
  void text(std::string_view name, std::string&) { add(name); }
  void either(std::string_view name, bool&, std::string_view, std::string_view) { add(name); }
  template <class Integer>
  void later(std::string_view name, Integer&) {
    if (older_.empty()) older_ = line_;
    add(name);
  }

  const std::string& str() const { return line_; }
  /// Those that files of older programs have.
  const std::string& older() const { return older_.empty() ? line_ : older_; }

 private:
  void add(std::string_view name) {
    if (!line_.empty()) line_ += ',';
    line_ += name;
  }
  std::string line_, older_;
};

/// Appends a row to a line, without the line's end.
class CsvWriter {
 public:
  explicit CsvWriter(std::string& line) : line_(line) {}

  template <class Integer>
  void integer(std::string_view, Integer& value) {
    char digits[24];
    put({digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr -
                                          digits)});
  }
  /// Nine significant digits. A number that is not finite is written as "nan" or "inf", which
  /// CsvReader takes only where the number may be missing.
  void number(std::string_view, double& value) { print("%.9g", value); }
  /// A number that is missing becomes an empty cell.
  void number(std::string_view name, std::optional<double>& value) {
    value ? number(name, *value) : put("");
  }
  void decimals(std::string_view, double& value, int digits) {
    char text[400];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    put(text);
  }
  /// The text must have no comma and no end of line.
  void text(std::string_view, std::string& value) { put(value); }
  void either(std::string_view, bool& value, std::string_view yes, std::string_view no) {
    put(value ? yes : no);
  }
  template <class Integer>
  void later(std::string_view name, Integer& value) {
    integer(name, value);
  }

 private:
  void print(const char* format, double value) {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    put(text);
  }
  void put(std::string_view cell) {
    if (!first_) line_ += ',';
    first_ = false;
    line_ += cell;
  }
  std::string& line_;
  bool first_ = true;
};

/// Reads a row. done() is false where it is no row of these columns: too few cells or too many, or
/// one that is not what its column holds, such as a number that is not finite.
class CsvReader {
 public:
  /// `older`: the file is of an older program, and lacks the columns of later().
  explicit CsvReader(std::string_view line, bool older = false) : rest_(line), older_(older) {}

  template <class Integer>
  void integer(std::string_view, Integer& value) {
    const std::string_view cell = next();
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    good_ = good_ && error == std::errc() && end == cell.data() + cell.size();
  }
  void number(std::string_view, double& value) {
    const std::optional<double> read = parse(next());
    good_ = good_ && read && std::isfinite(*read);
    if (good_) value = *read;
  }
  /// An empty cell is none, and so is a number that is not finite.
  void number(std::string_view, std::optional<double>& value) {
    value.reset();
    const std::string_view cell = next();
    if (cell.empty()) return;
    const std::optional<double> read = parse(cell);
    good_ = good_ && read;
    if (read && std::isfinite(*read)) value = read;
  }
  void decimals(std::string_view name, double& value, int) { number(name, value); }
  void text(std::string_view, std::string& value) { value = next(); }
  void either(std::string_view, bool& value, std::string_view yes, std::string_view no) {
    const std::string_view cell = next();
    value = cell == yes;
    good_ = good_ && (cell == yes || cell == no);
  }
  /// A column at the end that older files lack, where the value stays as it is.
  template <class Integer>
  void later(std::string_view name, Integer& value) {
    if (!older_) integer(name, value);
  }

  bool done() const { return good_ && ended_; }

 private:
  std::string_view next() {
    good_ = good_ && !ended_;
    const std::size_t comma = rest_.find(',');
    const std::string_view cell = rest_.substr(0, comma);
    ended_ = comma == std::string_view::npos;
    rest_ = ended_ ? std::string_view() : rest_.substr(comma + 1);
    return cell;
  }
  static std::optional<double> parse(std::string_view cell) {
    const std::string text(cell);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size()) return std::nullopt;
    return value;
  }

  std::string_view rest_;
  const bool older_;
  bool good_ = true, ended_ = false;
};

/// "step,epoch,...": the first line of a file of such rows.
template <class Row>
std::string csv_columns() {
  Row row{};
  CsvColumns columns;
  describe(columns, row);
  return columns.str();
}

/// The same of a file of an older program.
template <class Row>
std::string older_csv_columns() {
  Row row{};
  CsvColumns columns;
  describe(columns, row);
  return columns.older();
}

}  // namespace duplex
