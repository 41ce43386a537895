#include "tools/run_directory/evaluation_file.h"

#include <algorithm>

#include "tools/text/table.h"

namespace duplex::tools {

std::vector<ConfusionCell> most_confused(const EvaluationFile& evaluation, std::size_t most) {
  std::vector<ConfusionCell> cells;
  for (const ConfusionCell& cell : evaluation.confusion)
    if (cell.label != cell.said && cell.images > 0) cells.push_back(cell);
  std::stable_sort(cells.begin(), cells.end(), [](const ConfusionCell& a, const ConfusionCell& b) {
    return a.images > b.images;
  });
  if (cells.size() > most) cells.resize(most);
  return cells;
}

std::vector<std::size_t> lowest_recall(const EvaluationFile& evaluation, std::size_t most) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < evaluation.classes.size(); ++i)
    if (evaluation.classes[i].recall) numbers.push_back(i);
  std::stable_sort(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
    return *evaluation.classes[a].recall < *evaluation.classes[b].recall;
  });
  if (numbers.size() > most) numbers.resize(most);
  return numbers;
}

std::string images_text(const EvaluationFile& evaluation) {
  const std::string kind = evaluation.part == "test"    ? "test "
                           : evaluation.part == "train" ? "training "
                                                        : "";
  return grouped(static_cast<std::int64_t>(evaluation.accuracy.samples)) + " " + kind +
         (evaluation.accuracy.samples == 1 ? "image" : "images");
}

}  // namespace duplex::tools
