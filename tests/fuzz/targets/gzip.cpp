// Gzip files, in which IDX files come.
#include "datasets/decoding/gzip.h"

#include "tests/fuzz/target.h"

namespace duplex::fuzz {

void gzip(const Bytes& input) {
  // Deflate makes 1032 bytes of one, and a buffer that grows is there twice, at up to twice its
  // content.
  reads(input, 4 * 1032, [&] {
    const Bytes content = datasets::gunzip(input);
    require(datasets::is_gzip(input), "what is no gzip file is unpacked");
    require(content.size() <= 1032 * input.size(), "more comes out than deflate can hold");
  });
}

}  // namespace duplex::fuzz
