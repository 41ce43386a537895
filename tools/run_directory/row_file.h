// CSV files of a run directory: written row by row while the run goes on, and read again.
#pragma once
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/files/csv.h"

namespace duplex::tools {

/// Lines that can be read while the run goes on. Throws Error where a file cannot be written.
class LineFile {
 public:
  explicit LineFile(std::string path);
  void write(const std::string& line);

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// The same for rows (core/files/csv.h), under the line with their columns.
template <class Row>
class RowFile {
 public:
  explicit RowFile(const std::string& path) : file_(path) { file_.write(csv_columns<Row>()); }
  void write(Row row) {
    std::string line;
    CsvWriter writer(line);
    describe(writer, row);
    file_.write(line);
  }

 private:
  LineFile file_;
};

/// The text of a whole file.
template <class Row>
std::string text_of(const std::vector<Row>& rows) {
  std::string text = csv_columns<Row>() + "\n";
  for (Row row : rows) {
    CsvWriter writer(text);
    describe(writer, row);
    text += '\n';
  }
  return text;
}

/// All rows of a file. Of a run that was interrupted, which is not `complete`, a last line that is
/// not whole is left out. Throws Error, naming the file, where it has other columns, or a line is
/// no row.
template <class Row>
std::vector<Row> read_rows(const std::string& path, bool complete) {
  std::ifstream file(path);
  if (!file) throw Error(path + " cannot be read: " + std::generic_category().message(errno));
  std::string line;
  const bool any = static_cast<bool>(std::getline(file, line));
  if (!complete && (!any || file.eof())) return {};
  if (!any || line != csv_columns<Row>())
    throw Error(path + " is no " + path.substr(path.rfind('/') + 1) +
                " of this version of duplex: it has other columns");
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    if (!complete && file.eof()) break;
    Row row{};
    CsvReader reader(line);
    describe(reader, row);
    if (!reader.done()) throw Error(path + " is damaged: '" + line + "' is no row of it");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace duplex::tools
