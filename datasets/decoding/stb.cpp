// Compiles stb_image, which no other file does: JPEG, PNG and the inflater that PNG needs.
#include <cstdlib>

#include "core/error.h"
#include "datasets/decoding/stb.h"

namespace {

/// Throws, since corrupt data must not end the program. (The decoder's memory is lost then.)
void require(bool condition) {
  if (!condition) throw duplex::Error("the image decoder met an impossible state");
}

}  // namespace

// Memory is zeroed, so that what corrupt data leave unwritten is the same in every run, on every
// rank.
#define STBI_MALLOC(bytes) std::calloc(1, bytes)
#define STBI_REALLOC(memory, bytes) std::realloc(memory, bytes)
#define STBI_FREE(memory) std::free(memory)
#define STBI_ASSERT(condition) require(condition)
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

namespace duplex::datasets {

void forget_failure_reason() {
  stbi__g_failure_reason = nullptr;
}

}  // namespace duplex::datasets
