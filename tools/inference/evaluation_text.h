// An evaluation as text.
#pragma once
#include <string>

#include "tools/run_directory/evaluation_file.h"

namespace duplex::tools {

/// For people, at 80 columns: accuracy; the confusion matrix, or where it is wider than that, the
/// pairs of classes that are most often confused; precision and recall, of many classes those with
/// the lowest recall.
std::string text_of_evaluation(const EvaluationFile& evaluation);

/// A row for each class.
std::string csv_of(const EvaluationFile& evaluation);

}  // namespace duplex::tools
