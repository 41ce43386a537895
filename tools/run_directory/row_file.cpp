#include "tools/run_directory/row_file.h"

#include <cerrno>
#include <system_error>

namespace duplex::tools {

LineFile::LineFile(std::string path)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "we"), std::fclose) {}

void LineFile::write(const std::string& line) {
  if (!file_ || std::fprintf(file_.get(), "%s\n", line.c_str()) < 0 ||
      std::fflush(file_.get()) != 0) {
    throw Error(path_ + " cannot be written: " + std::generic_category().message(errno));
  }
}

}  // namespace duplex::tools
