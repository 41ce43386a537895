#include "tools/run_directory/trace_file.h"

#include "tools/run_directory/json_file.h"
#include "tools/run_directory/schema.h"

namespace duplex::tools {
namespace {

template <class Part>
std::string line_of(Part& part) {
  JsonWriter writer;
  describe(writer, part);
  return writer.take().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

/// A trace without events has both the text before them and the one behind them.
TraceFileWriter::TraceFileWriter(const std::string& path, const TraceFileHead& head) : file_(path) {
  TraceFile empty;
  empty.head = head;
  const std::string text = line_of(empty);
  const std::size_t events = text.find("[]") + 1;
  file_.write(text.substr(0, events) + "\n");
  end_ = "\n" + text.substr(events) + "\n";
}

void TraceFileWriter::put(TraceFileEvent event) {
  file_.write((first_ ? "" : ",\n") + line_of(event));
  first_ = false;
}

void TraceFileWriter::commit() {
  file_.write(end_);
  file_.commit();
}

TraceFile read_trace_file(const std::string& path) {
  const nlohmann::json json = parse_json_file(path);
  TraceFile trace;
  try {
    JsonReader reader(json);
    describe(reader, trace);
  } catch (const Error& error) {
    throw Error(path + " " + error.what());
  }
  return trace;
}

}  // namespace duplex::tools
