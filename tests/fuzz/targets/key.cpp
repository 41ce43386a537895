// Key files.
#include "net/rendezvous/key.h"

#include "tests/fuzz/memory_file.h"

namespace duplex::fuzz {

void key(const Bytes& input) {
  static MemoryFile file;
  file.write(input);
  reads(input, 8, [&] {
    const net::Key read = net::read_key(file.path());
    require(read.text() == text_of(input), "a key changes its text");
    require(!read.empty(), "a key file holds no key");
  });
}

}  // namespace duplex::fuzz
