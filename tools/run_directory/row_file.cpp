#include "tools/run_directory/row_file.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/files/write_all.h"

namespace duplex::tools {

LineFile::LineFile(std::string path, Rows rows, Troubles& troubles)
    : path_(std::move(path)), troubles_(troubles) {
  const int anew = rows == Rows::anew ? O_TRUNC : 0;
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | anew, 0666);
  if (file_ < 0)
    throw Error(path_ + " cannot be written: " + std::generic_category().message(errno));
}

LineFile::~LineFile() {
  if (file_ >= 0) ::close(file_);
}

void LineFile::write(std::string line) {
  if (file_ < 0) return;
  line += '\n';
  const std::size_t written = write_all(file_, line.data(), line.size());
  if (written == line.size()) return;
  troubles_.add(path_ + " cannot be written: " + std::generic_category().message(errno));
  const off_t end = ::lseek(file_, 0, SEEK_END);
  // The beginning of a line would be no row; a device holds nothing.
  if (written > 0 && end >= static_cast<off_t>(written) &&
      ::ftruncate(file_, end - static_cast<off_t>(written)) != 0)
    troubles_.add(path_ + " ends in the middle of a line");
  ::close(file_);
  file_ = -1;
}

}  // namespace duplex::tools
