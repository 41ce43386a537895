// JSON files of a run directory, and what weights say of their training. An input is read as each
// of them.
#include "tools/run_directory/json_file.h"

#include <nlohmann/json.hpp>

#include "tests/fuzz/memory_file.h"
#include "tools/run_directory/run_files.h"
#include "tools/run_directory/trace_file.h"

namespace duplex::fuzz {
namespace {

/// A value of 16 bytes for "1,", and what holds it grows by doubling.
constexpr std::size_t each = 400;

/// Reads a file; what was read and is written can be read again.
template <class Read>
void check(const MemoryFile& file, const Bytes& input, const Read& read) {
  static MemoryFile written;
  reads(input, each, [&] {
    const std::string text = tools::text_of(read(file.path()));
    written.write(text.data(), text.size());
    // The text has keys that the input may lack.
    require(reads(input, 2 * each, [&] { read(written.path()); }),
            "a file that was read cannot be read when it is written again");
  });
}

}  // namespace

void json(const Bytes& input) {
  static MemoryFile file;
  file.write(input);
  if (!reads(input, each, [] { tools::read_json_file(file.path()); })) {
    reads(input, each, [] { tools::read_trace_file(file.path()); });
    return;
  }
  check(file, input, tools::read_config);
  check(file, input, tools::read_summary);
  check(file, input, tools::read_transport);
  check(file, input, tools::read_profile_file);
  check(file, input, tools::read_evaluation);
  check(file, input, [](const std::string& path) {
    return tools::parse_weights_note(tools::read_json_file(path).dump(), path);
  });
  reads(input, each, [] { tools::read_trace_file(file.path()); });
}

}  // namespace duplex::fuzz
