// Safetensors files, of whatever program wrote them.
#include "core/files/safetensors.h"

#include "tests/fuzz/memory_file.h"

namespace duplex::fuzz {

void safetensors(const Bytes& input) {
  static MemoryFile file;
  file.write(input);
  reads(input, 400, [] {
    const SafetensorsFile tensors(file.path());
    std::vector<float> values;
    for (const SafetensorsEntry& entry : tensors.entries()) {
      values.resize(static_cast<std::size_t>(entry.shape.elements()));
      tensors.read(entry, values.data());
      touch(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(float));
    }
    require(tensors.entries().empty() || tensors.entries().front().offset >= 8,
            "an array lies in the header");
    tensors.verify();
  });
}

}  // namespace duplex::fuzz
