// A function that stb.cpp adds to stb_image.
#pragma once

namespace duplex::datasets {

/// Makes stbi_failure_reason() null on this thread until stb_image gives a reason again. It gives
/// none where it meets an unknown deflate block, and an earlier picture's would be taken for it.
void forget_failure_reason();

}  // namespace duplex::datasets
