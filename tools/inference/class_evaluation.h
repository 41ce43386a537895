// Evaluates a trained network on images of a data set, class by class.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "layers/network.h"
#include "tools/run_directory/evaluation_file.h"
#include "tools/training/evaluation.h"

namespace duplex::tools {

/// The evaluation names so many images that the network is most wrong about.
constexpr std::size_t worst_at_most = 24;

/// Runs the network over the images, and fills in accuracy, classes, confusion and worst; `names`
/// are those of the data set's classes, and numbers stand for the rest of the network's. The worst
/// are those with the greatest losses that it is wrong about; with `pictures` they have them.
/// Returns the images that could not be read. Throws Error where none could.
std::vector<datasets::LeftOut> evaluate_classes(Network& network, const datasets::Subset& images,
                                                const PassOptions& options, bool pictures,
                                                EvaluationFile& evaluation);

/// A sample of a data set as a PNG in base64, as the network sees it, but not larger than a page
/// shows it.
/// `test_side`: LoaderOptions::test_side.
std::string picture_of(const datasets::Dataset& data, std::size_t sample, int test_side = 0);

}  // namespace duplex::tools
