// A CSV file that a ledger writes in blocks, while the run goes on.
#pragma once
#include <cstddef>
#include <fstream>
#include <ios>
#include <ostream>
#include <string>

#include "core/error.h"
#include "core/files/csv.h"

namespace duplex::net {

/// Rows are described as core/files/csv.h says. A row that cannot be written is lost, and so are
/// all behind it; close() tells.
template <class Row>
class CsvFile {
 public:
  /// Begins the file anew. An empty path: there is none. Throws Error if it cannot be opened.
  explicit CsvFile(const std::string& path) : name_("ledger " + path) {
    if (path.empty()) return;
    file_.open(path, std::ios::trunc);
    if (!file_) throw Error(name_ + " cannot be written: is its folder there?");
    file_ << csv_columns<Row>() << std::endl;  // A reader may come before the first rows.
  }

  bool is_open() const { return file_.is_open(); }

  /// Returns the bytes of the row; 0 where there is no file.
  std::size_t write(Row row) {
    if (!file_.is_open()) return 0;
    line_.clear();
    CsvWriter writer(line_);
    describe(writer, row);
    line_ += '\n';
    file_.write(line_.data(), static_cast<std::streamsize>(line_.size()));
    return line_.size();
  }

  /// Returns what is wrong with the file; "" if it is whole.
  std::string close() {
    if (!file_.is_open()) return "";
    file_.close();
    return file_ ? "" : name_ + " is incomplete: it cannot be written (disk full?)";
  }

 private:
  const std::string name_;
  std::ofstream file_;
  std::string line_;
};

}  // namespace duplex::net
