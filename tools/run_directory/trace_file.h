// trace.json: a Chrome trace, as tools/tracing/trace.h makes it and report draws it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/files/output_file.h"

namespace duplex::tools {

/// Names of events that name a rank or a row, or place a row, in Chrome's words.
constexpr const char* trace_names_rank = "process_name";
constexpr const char* trace_names_row = "thread_name";
constexpr const char* trace_places_row = "thread_sort_index";

/// The details that an event has beside its time.
struct TraceFileDetails {
  std::optional<std::string> name;          ///< The name of a rank or a row.
  std::optional<std::uint64_t> sort_index;  ///< The place of a row.
  std::optional<std::uint64_t> step;
  std::optional<std::string> waits_for;  ///< The weights that a wait was for.
  std::optional<double> queued_us;       ///< How long a sent frame waited for its turn.
  std::optional<std::uint64_t> bytes;    ///< Bytes of a frame, header included.
  std::optional<int> gradient_of_rank;   ///< Whose gradient the store worked on.
};

/// An event of a Chrome trace. Times are microseconds.
struct TraceFileEvent {
  /// "M" names a rank or a row; "X" takes a stretch of time, "i" none; "s" and "f" are the ends of
  /// an arrow.
  std::string phase;
  int rank = 0;
  std::optional<int> row;
  std::optional<double> begin, takes;
  std::optional<std::uint64_t> arrow;  ///< Its number, the same at both ends.
  std::string name;
  std::optional<std::string> category;
  std::optional<TraceFileDetails> details;
  std::optional<std::string> scope, binds;  ///< How viewers draw instants and arrows.
};

/// Facts about the trace as a whole.
struct TraceFileHead {
  std::string model;  ///< Its title.
};

struct TraceFile {
  std::string unit = "ms";  ///< The unit in which viewers show times.
  std::vector<TraceFileEvent> events;
  TraceFileHead head;
};

/// Writes a trace event by event.
class TraceFileWriter {
 public:
  /// Throws Error where the file cannot be written.
  TraceFileWriter(const std::string& path, const TraceFileHead& head);
  void put(TraceFileEvent event);
  /// The file is there from now on.
  void commit();

 private:
  OutputFile file_;
  std::string end_;
  bool first_ = true;
};

/// Throws Error where the file is no trace, damaged or of another version of duplex.
TraceFile read_trace_file(const std::string& path);

}  // namespace duplex::tools
