// The function that libFuzzer calls. It is linked with a single target.
#include "tests/fuzz/target.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer gives the name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  duplex::fuzz::targets().front().read(duplex::fuzz::Bytes(data, data + size));
  return 0;
}
