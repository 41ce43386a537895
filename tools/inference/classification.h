// A trained network says what images show; its answers are shown as text, CSV or JSON.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "layers/network.h"
#include "tools/training/evaluation.h"

namespace duplex::tools {

struct Guess {
  std::size_t number = 0;    ///< The class's, from 0.
  double probability = 0.0;  ///< By probabilities() (tools/training/evaluation.h).
};

struct ClassifiedImage {
  std::string path;
  std::vector<Guess> guesses;  ///< The likeliest first; of equal ones the lower number.
};

struct Classification {
  std::vector<ClassifiedImage> images;    ///< Those that could be read, in their order.
  std::vector<datasets::LeftOut> failed;  ///< The others, and those whose outputs are not finite.
};

/// Asks the network about the images in these files, in batches of its size, for `top` guesses
/// each.
Classification classify_images(Network& network, const std::vector<std::string>& paths,
                               std::size_t top, const PassOptions& options);

/// The images for people; `names`: of the classes, by number.
std::string text_of(const Classification& found, const Model& model,
                    const std::vector<std::string>& names);
std::string json_of(const Classification& found, const Model& model,
                    const std::vector<std::string>& names);
/// A row for each guess.
std::string csv_of(const Classification& found, const std::vector<std::string>& names);

}  // namespace duplex::tools
