#include "tools/report/evaluation.h"

#include <cmath>
#include <cstdlib>

#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

constexpr std::size_t matrix_at_most = 24, pairs_at_most = 30, classes_at_most = 20;

std::string percent(const std::optional<double>& part) {
  return part ? fixed(100.0 * *part, 1) + "%" : "";
}

const ClassResult& class_of(const EvaluationFile& evaluation, std::int64_t number) {
  return evaluation.classes[static_cast<std::size_t>(number)];
}

/// A cell of the matrix, whose colour is stronger the greater its part of the row: blue where the
/// network is right, else orange.
std::string cell_of(std::uint64_t images, std::uint64_t of_all, bool right) {
  if (images == 0) return "<td></td>";
  constexpr double strongest = 0.65;
  const double part = of_all == 0 ? 0.0 : static_cast<double>(images) / static_cast<double>(of_all);
  return std::string("<td style=\"background:rgba(") + (right ? "0,114,178," : "213,94,0,") +
         fixed(strongest * std::sqrt(std::min(part, 1.0)), 3) + ")\">" +
         grouped(static_cast<std::int64_t>(images)) + "</td>";
}

void add_matrix(Page& page, const EvaluationFile& evaluation) {
  const std::size_t classes = evaluation.classes.size();
  std::vector<std::vector<std::uint64_t>> counts(classes, std::vector<std::uint64_t>(classes));
  for (const ConfusionCell& cell : evaluation.confusion)
    counts[static_cast<std::size_t>(cell.label)][static_cast<std::size_t>(cell.said)] = cell.images;
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\"><table class=\"matrix\"><thead><tr>"
      "<th scope=\"col\" class=\"t\">class</th>";
  for (std::size_t i = 0; i < classes; ++i)
    html += "<th scope=\"col\" title=\"" + escape(evaluation.classes[i].name) + "\">" +
            std::to_string(i) + "</th>";
  html += "<th scope=\"col\">recall</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < classes; ++i) {
    const ClassResult& own = evaluation.classes[i];
    const std::string number = std::to_string(i);
    html += "<tr><th scope=\"row\" class=\"t\" title=\"" + escape(own.name) + "\">" + number +
            (own.name == number ? "" : " " + escape(own.name)) + "</th>";
    for (std::size_t j = 0; j < classes; ++j) html += cell_of(counts[i][j], own.images, i == j);
    html += "<td>" + percent(own.recall) + "</td></tr>\n";
  }
  html += "<tr><th scope=\"row\" class=\"t\">precision</th>";
  for (const ClassResult& each : evaluation.classes)
    html += "<td>" + (each.precision ? fixed(100.0 * *each.precision, 0) + "%" : "") + "</td>";
  page.html(html + "<td></td></tr>\n</tbody></table></div>");
  page.paragraph(
      "Rows are the classes of the images, columns what the network says. The stronger the colour "
      "of a cell, the greater its part of its row. Recall: the part of a class that is said to be "
      "of it; "
      "precision: the part of what is said to be of a class that is.");
}

Page::Row row_of(const EvaluationFile& evaluation, std::size_t number) {
  const ClassResult& each = evaluation.classes[number];
  return {each.name, grouped(static_cast<std::int64_t>(each.images)), percent(each.recall),
          percent(each.precision)};
}

void add_pairs(Page& page, const EvaluationFile& evaluation) {
  std::vector<Page::Row> rows;
  for (const ConfusionCell& pair : most_confused(evaluation, pairs_at_most)) {
    const ClassResult& label = class_of(evaluation, pair.label);
    rows.push_back({label.name, class_of(evaluation, pair.said).name,
                    grouped(static_cast<std::int64_t>(pair.images)),
                    label.images == 0 ? ""
                                      : percent(static_cast<double>(pair.images) /
                                                static_cast<double>(label.images))});
  }
  if (rows.empty()) {
    page.paragraph("No class is taken for another.");
  } else {
    page.paragraph("The classes that are most often taken for another:");
    page.table({"class", "is taken for", "images", "of the class"}, rows, 2);
  }
  const std::vector<std::string> columns{"class", "images", "recall", "precision"};
  rows.clear();
  for (const std::size_t number : lowest_recall(evaluation, classes_at_most))
    rows.push_back(row_of(evaluation, number));
  page.paragraph(
      "The classes with the lowest recall, the part of a class that is said to be of it; "
      "precision: the part of what is said to be of a class that is.");
  page.table(columns, rows);
  rows.clear();
  for (std::size_t i = 0; i < evaluation.classes.size(); ++i) rows.push_back(row_of(evaluation, i));
  page.begin_fold("All classes");
  page.table(columns, rows);
  page.end_fold();
}

void add_worst(Page& page, const RunData& run) {
  const EvaluationFile& evaluation = *run.evaluation;
  if (evaluation.worst.empty()) return;
  page.heading(3, "Most wrong", run.name + "-worst");
  page.paragraph(
      "The images with the greatest losses, as the network sees them: their class, with the "
      "probability that the network gives it, and what it says instead.");
  std::string html = "<div class=\"worst\">";
  for (const WrongImage& image : evaluation.worst) {
    const std::string label = escape(class_of(evaluation, image.label).name),
                      said = escape(class_of(evaluation, image.said).name);
    html += "<figure title=\"" + escape(image.name) + ", loss " + fixed(image.loss, 3) + "\">";
    if (image.picture)
      html += "<img alt=\"an image of " + label + "\" src=\"data:image/png;base64," +
              *image.picture + "\">";
    html += "<figcaption><b>" + label + "</b> " + percent(image.own) + "<br>said " + said + " " +
            percent(image.probability) + "</figcaption></figure>\n";
  }
  page.html(html + "</div>");
}

}  // namespace

void add_evaluation(Page& page, const RunData& run) {
  if (!run.evaluation) return;
  const EvaluationFile& evaluation = *run.evaluation;
  page.heading(2, "Evaluation of " + run.name, run.name + "-evaluation");
  const AccuracySummary& accuracy = evaluation.accuracy;
  page.paragraph("Top-1 " + fixed(100.0 * accuracy.top1, 2) + "%, top-5 " +
                 fixed(100.0 * accuracy.top5, 2) + "% of " + images_text(evaluation) +
                 ", mean loss " + fixed(accuracy.loss, 5) + ". Data: " + evaluation.data +
                 ". Weights: " + evaluation.weights +
                 (evaluation.steps.empty() ? "" : ", after " + evaluation.steps + " steps") + ".");
  if (evaluation.classes.size() <= matrix_at_most)
    add_matrix(page, evaluation);
  else
    add_pairs(page, evaluation);
  add_worst(page, run);
}

}  // namespace duplex::tools::reports
