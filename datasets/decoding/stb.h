// Declares a function that stb.cpp adds to stb_image.
#pragma once

namespace duplex::datasets {

/// Makes stbi_failure_reason() null on this thread until stb_image gives a reason again. stb_image
/// gives none for an unknown deflate block, and an earlier image's reason would be taken for it.
void forget_failure_reason();

}  // namespace duplex::datasets
