// CSV files of a run directory: written row by row while the run goes on, and read again.
#pragma once
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/files/csv.h"
#include "core/files/output_file.h"
#include "tools/run_directory/troubles.h"
#include "tools/text/say.h"

namespace duplex::tools {

/// Says whether a file begins anew, or goes on where it ends.
enum class Rows { anew, appended };

/// Lines that can be read while the run goes on. `troubles` is told where one cannot be written;
/// nothing of it stays, and the lines behind it are dropped.
class LineFile {
 public:
  /// Throws Error where the file cannot be opened.
  LineFile(std::string path, Rows rows, Troubles& troubles);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  void write(std::string line);

 private:
  std::string path_;
  Troubles& troubles_;
  int file_ = -1;
};

/// The same for rows (core/files/csv.h), under the line with their columns.
template <class Row>
class RowFile {
 public:
  RowFile(const std::string& path, Rows rows, Troubles& troubles) : file_(path, rows, troubles) {
    if (rows == Rows::anew) file_.write(csv_columns<Row>());
  }
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

/// Calls take(row) with all rows of a file, and refuse(line) with each line that is no row. Where
/// the run was interrupted, and so is not `complete`, a last line that is not whole is left out.
/// Throws Error, naming the file, where it has other columns.
template <class Row, class Take, class Refuse>
void each_line(const std::string& path, bool complete, const Take& take, const Refuse& refuse) {
  std::ifstream file(path);
  if (!file) throw Error(path + " cannot be read: " + std::generic_category().message(errno));
  std::string line;
  const bool any = static_cast<bool>(std::getline(file, line));
  if (!complete && (!any || file.eof())) return;
  const bool older = line != csv_columns<Row>();
  if (!any || (older && line != older_csv_columns<Row>()))
    throw Error(path + " is no " + path.substr(path.rfind('/') + 1) +
                " of this version of duplex: it has other columns");
  while (std::getline(file, line)) {
    if (!complete && file.eof()) break;
    Row row{};
    CsvReader reader(line, older);
    describe(reader, row);
    if (reader.done())
      take(std::move(row));
    else
      refuse(line);
  }
}

/// Calls take(row) with all of these rows. Throws Error, naming the file, also where a line is no
/// row.
template <class Row, class Take>
void each_row(const std::string& path, bool complete, const Take& take) {
  each_line<Row>(path, complete, take, [&](const std::string& line) {
    throw Error(path + " is damaged: '" + line + "' is no row of it");
  });
}

/// Returns all of these rows.
template <class Row>
std::vector<Row> read_rows(const std::string& path, bool complete) {
  std::vector<Row> rows;
  each_row<Row>(path, complete, [&](Row&& row) { rows.push_back(std::move(row)); });
  return rows;
}

/// Leaves only those rows in a file for which keep(row) is true, and returns them; makes a file
/// without rows where there is none. A last line that is not whole goes, too, and so do lines that
/// are no rows, which a power failure leaves; the user is told of these.
template <class Row, class Keep>
std::vector<Row> keep_rows(const std::string& path, const Keep& keep) {
  std::vector<Row> kept;
  std::size_t damaged = 0;
  if (std::ifstream(path))
    each_line<Row>(
        path, false,
        [&](Row&& row) {
          if (keep(row)) kept.push_back(std::move(row));
        },
        [&](const std::string&) { ++damaged; });
  if (damaged > 0)
    say(path + " is damaged: " + std::to_string(damaged) + (damaged == 1 ? " line" : " lines") +
        " of it that " + (damaged == 1 ? "is no row" : "are no rows") + " will be left out");
  write_file(path, text_of(kept));
  return kept;
}

}  // namespace duplex::tools
