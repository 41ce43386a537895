// Exercises that train have a small data set, and look at the weights that come of it.
#pragma once
#include <string>
#include <vector>

namespace duplex::course {

/// Writes a data set of IDX files into a folder: `images` random grey images of 28x28 for training,
/// and ten for tests, of ten classes. The same numbers have the same images every time. Throws
/// Error where a file cannot be written.
void write_random_images(const std::string& folder, int images);

/// Returns all values of a safetensors file, in the order of the file. Throws Error where there is
/// none.
std::vector<float> weights_in(const std::string& path);

}  // namespace duplex::course
