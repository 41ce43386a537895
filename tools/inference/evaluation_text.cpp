#include "tools/inference/evaluation_text.h"

#include <algorithm>
#include <cstdio>

#include "net/wire/frame.h"
#include "tools/inference/trained_network.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

constexpr std::size_t columns = 80, longest_name = 36, pairs_at_most = 20, classes_at_most = 20;

/// A name of at most so many bytes, without half a letter at its end.
std::string cut(const std::string& name, std::size_t most) {
  const std::string shown = net::printable(name);
  if (shown.size() <= most) return shown;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0U) == 0x80U) --end;
  return shown.substr(0, end);
}

/// The name of a class of this number, unless that is all that there is to say.
std::string name_of(const ClassResult& result, std::size_t number, std::size_t most) {
  return result.name == std::to_string(number) ? "" : cut(result.name, most);
}

std::string percent(const std::optional<double>& part) {
  return part ? fixed(100.0 * *part, 1) + "%" : "-";
}

std::string right_aligned(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

/// The matrix; empty if it is wider than a terminal.
std::string matrix_of(const EvaluationFile& evaluation) {
  const std::size_t classes = evaluation.classes.size();
  const std::size_t digits = std::to_string(classes - 1).size();
  std::size_t cell = digits + 1;
  for (const ConfusionCell& each : evaluation.confusion)
    cell = std::max(cell, std::to_string(each.images).size() + 1);
  if (classes > columns || digits + classes * cell > columns) return "";
  const std::size_t left = columns - digits - classes * cell;
  std::size_t longest = 0;  // The longest name decides whether there is room for names.
  for (std::size_t i = 0; i < classes; ++i)
    longest = std::max(longest, name_of(evaluation.classes[i], i, longest_name).size());
  const std::size_t name = left < 4 ? 0 : std::min(longest, left - 1);

  std::vector<std::vector<std::uint64_t>> counts(classes, std::vector<std::uint64_t>(classes));
  for (const ConfusionCell& each : evaluation.confusion)
    counts[static_cast<std::size_t>(each.label)][static_cast<std::size_t>(each.said)] = each.images;
  std::string text(digits + (name > 0 ? name + 1 : 0), ' ');
  for (std::size_t i = 0; i < classes; ++i) text += right_aligned(std::to_string(i), cell);
  text += '\n';
  for (std::size_t i = 0; i < classes; ++i) {
    text += right_aligned(std::to_string(i), digits);
    if (name > 0) {
      const std::string own = name_of(evaluation.classes[i], i, name);
      text += " " + own + std::string(name - own.size(), ' ');
    }
    for (const std::uint64_t count : counts[i])
      text += right_aligned(count == 0 ? "." : std::to_string(count), cell);
    text += '\n';
  }
  return "\nRows are the classes of the images, columns what the network says:\n" + text;
}

std::string pairs_of(const EvaluationFile& evaluation) {
  const std::vector<ConfusionCell> pairs = most_confused(evaluation, pairs_at_most);
  if (pairs.empty()) return "\nNo class is taken for another.\n";
  Table table({{"class", Table::Align::left},
               {"is taken for", Table::Align::left},
               {"images", Table::Align::right},
               {"of all", Table::Align::right}});
  constexpr std::size_t name = longest_name * 3 / 4;
  for (const ConfusionCell& pair : pairs) {
    const ClassResult& label = evaluation.classes[static_cast<std::size_t>(pair.label)];
    const ClassResult& said = evaluation.classes[static_cast<std::size_t>(pair.said)];
    table.row({cut(label.name, name), cut(said.name, name),
               grouped(static_cast<std::int64_t>(pair.images)),
               percent(static_cast<double>(pair.images) / static_cast<double>(label.images))});
  }
  return "\nThe classes that are most often taken for another:\n" + table.str();
}

std::string classes_of(const EvaluationFile& evaluation) {
  const bool all = evaluation.classes.size() <= classes_at_most;
  std::vector<std::size_t> numbers;
  if (all)
    for (std::size_t i = 0; i < evaluation.classes.size(); ++i) numbers.push_back(i);
  else
    numbers = lowest_recall(evaluation, classes_at_most);
  Table table({{"class", Table::Align::right},
               {"", Table::Align::left},
               {"images", Table::Align::right},
               {"precision", Table::Align::right},
               {"recall", Table::Align::right}});
  for (const std::size_t i : numbers) {
    const ClassResult& each = evaluation.classes[i];
    table.row({std::to_string(i), name_of(each, i, longest_name),
               grouped(static_cast<std::int64_t>(each.images)), percent(each.precision),
               percent(each.recall)});
  }
  return std::string(all ? "\nPrecision: the part of what is said to be of a class that is. "
                           "Recall: the part\nof a class that is said to be of it.\n"
                         : "\nThe classes with the lowest recall, the part of a class that is "
                           "said to be of it\n(precision: the part of what is said to be of a "
                           "class that is):\n") +
         table.str();
}

}  // namespace

std::string text_of_evaluation(const EvaluationFile& evaluation) {
  const AccuracySummary& accuracy = evaluation.accuracy;
  std::string text = "accuracy top-1 " + fixed(100.0 * accuracy.top1, 2) + "%, top-5 " +
                     fixed(100.0 * accuracy.top5, 2) + "% of " + images_text(evaluation) +
                     ", mean loss " + fixed(accuracy.loss, 5) + "\n";
  const std::string matrix = matrix_of(evaluation);
  return text + (matrix.empty() ? pairs_of(evaluation) : matrix) + classes_of(evaluation);
}

std::string csv_of(const EvaluationFile& evaluation) {
  const auto number = [](const std::optional<double>& value) {
    char text[32] = "";
    if (value) std::snprintf(text, sizeof text, "%.17g", *value);
    return std::string(text);
  };
  std::string text = "class,name,images,said,right,precision,recall\n";
  for (std::size_t i = 0; i < evaluation.classes.size(); ++i) {
    const ClassResult& each = evaluation.classes[i];
    text += std::to_string(i) + "," + csv_cell(each.name) + "," + std::to_string(each.images) +
            "," + std::to_string(each.said) + "," + std::to_string(each.right) + "," +
            number(each.precision) + "," + number(each.recall) + "\n";
  }
  return text;
}

}  // namespace duplex::tools
