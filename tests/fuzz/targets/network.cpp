// Networks in text files.
#include <algorithm>

#include "core/error.h"
#include "models/file/reader.h"
#include "models/file/writer.h"
#include "tests/fuzz/target.h"

namespace duplex::fuzz {
namespace {

/// Returns whether there are repeats that may make thousands of layers of a few lines.
bool is_long(const std::string& text) {
  int digits = 0;
  return text.find("repeat") != std::string::npos &&
         std::any_of(text.begin(), text.end(), [&](char letter) {
           digits = letter >= '0' && letter <= '9' ? digits + 1 : 0;
           return digits >= 3;
         });
}

}  // namespace

void network(const Bytes& input) {
  const std::string text = text_of(input);
  // Thousands of layers take milliseconds, and there are few ways to write them.
  if (is_long(text) && !is_sampled(input)) return;
  // A line of seven letters is a layer, which with its name and place takes two KiB; repeats make
  // 4,096 of a few lines.
  constexpr std::size_t layers = 4096, layer = 8192, line = 7;
  reads(input, std::max(layer / line, layers * layer / (input.size() + 1)), [&] {
    const Model model = models::file::read_network(text, "input", {});
    require(model.nodes().size() <= layers + 1, "a network has too many layers");
    require(model.trained_parameters() > 0 && model.macs() >= 0, "a size has overflowed");
    for (const Model::Entry& entry : model.nodes())
      require(entry.shape.elements() > 0, "a map has overflowed");
    std::string written;
    try {
      written = models::file::network_text(model);
    } catch (const Error& error) {
      // Without the repeats it may be longer than a file may be.
      require(std::string(error.what()).find("longer than") != std::string::npos,
              "what was read cannot be written");
      return;
    }
    require(models::file::network_text(models::file::read_network(written, "again", {})) == written,
            "what is written differs when it is read again");
  });
}

}  // namespace duplex::fuzz
