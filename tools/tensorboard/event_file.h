// Event files as TensorBoard reads them: records of TFRecord, each of which is a message Event of
// TensorFlow's event.proto (docs/decisions/display.md says which of its fields are written).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/run_directory/troubles.h"

namespace duplex::tools {

/// A number by the name of its chart, such as "train/loss".
using Scalars = std::vector<std::pair<std::string, double>>;

/// Frames the bytes of a message: their number, its checksum, they, their checksum. The number has
/// 8 bytes and a checksum 4, little-endian; it is that of CRC32C, rotated and with a constant
/// added, since a checksum of bytes that have checksums among them tells little.
std::string tf_record(std::string_view message);
/// Messages Event. `wall`: seconds since 1970.
std::string version_event(double wall);
std::string start_event(double wall, std::uint64_t step);
std::string scalars_event(double wall, std::uint64_t step, const Scalars& scalars);

/// Returns whether TensorBoard takes a file of this name for one of events.
bool is_event_file(const std::string& name);

class EventFile {
 public:
  /// Makes `directory`, and in it a file whose name sorts behind those that are there. Throws Error
  /// where that fails, and Error(Exit::usage) where the directory has events already, unless the
  /// run `resumes`. `troubles` is told where events cannot be written; those behind them are
  /// dropped.
  EventFile(std::string directory, bool resumes, Troubles& troubles);
  /// Removes the file if nothing was written.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  const std::string& path() const { return path_; }
  /// Call it where a program that may go on with a run begins a new one: throws what the
  /// constructor throws for any other, if there were events in the directory.
  void require_new() const;
  /// Begins the file: the run has trained so many steps before. TensorBoard drops what other files
  /// of the directory have of later ones, which are trained once more.
  void begin(std::uint64_t steps);
  /// Writes numbers as they are after so many steps, at once and whole, so that they survive a
  /// program that is killed.
  void write(std::uint64_t steps, const Scalars& scalars);

 private:
  void append(const std::string& record);

  const std::string directory_;
  std::string path_;
  Troubles& troubles_;
  int descriptor_ = -1;      ///< -1: nothing is written any more.
  std::uint64_t bytes_ = 0;  ///< Those of whole records.
  const bool goes_on_;       ///< There are events in the directory.
};

}  // namespace duplex::tools
