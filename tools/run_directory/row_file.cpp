#include "tools/run_directory/row_file.h"

#include <cerrno>
#include <system_error>

namespace duplex::tools {

LineFile::LineFile(std::string path, Rows rows, Troubles& troubles)
    : path_(std::move(path)),
      troubles_(troubles),
      file_(std::fopen(path_.c_str(), rows == Rows::anew ? "we" : "ae"), std::fclose) {
  if (!file_) throw Error(path_ + " cannot be written: " + std::generic_category().message(errno));
}

void LineFile::write(const std::string& line) {
  if (!file_) return;
  if (std::fprintf(file_.get(), "%s\n", line.c_str()) >= 0 && std::fflush(file_.get()) == 0) return;
  troubles_.add(path_ + " cannot be written: " + std::generic_category().message(errno));
  file_.reset();
}

}  // namespace duplex::tools
