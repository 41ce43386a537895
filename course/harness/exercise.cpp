#include "course/harness/exercise.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "core/error.h"
#include "course/harness/predictions.h"

namespace duplex::course {
namespace {

using Predictions = std::map<std::string, std::optional<double>>;

std::string path_of(const Exercise& exercise, const std::string& file) {
  return "course/" + exercise.folder + "/" + file;
}

Predictions predictions_of(const Exercise& exercise) {
  std::vector<std::string> names;
  for (const Figure& figure : exercise.figures) names.push_back(figure.name);
  return read_predictions(path_of(exercise, "prediction.txt"), names);
}

bool all_are_there(const Predictions& predictions) {
  for (const auto& [name, value] : predictions)
    if (!value) return false;
  return true;
}

void print_check(const Report& report) {
  if (report.ok()) {
    std::printf("check       passed: %d of %d cases\n", report.passed, report.cases);
    return;
  }
  std::printf("check       failed in case %d of %d: %s\n            %s\n", report.passed + 1,
              report.cases, report.failed.c_str(), report.complaint.c_str());
}

void ask_for(const Exercise& exercise, const Predictions& predictions) {
  std::printf("predict     Before this is measured, write into %s:\n",
              path_of(exercise, "prediction.txt").c_str());
  for (const Figure& figure : exercise.figures)
    if (!predictions.at(figure.name))
      std::printf("            %s = %s\n", figure.name.c_str(), figure.meaning.c_str());
}

/// Says how far a prediction is from what was measured.
std::string difference_of(const Figure& figure, double predicted, double measured) {
  if (predicted == measured) return "exact";
  if (std::fabs(measured) <= figure.nothing)
    return std::fabs(predicted) <= figure.nothing ? "right: 0" : "wrong: 0";
  const double ratio = predicted / measured;
  if (ratio > 2.0 || ratio < 0.5) return ratio > 0.0 ? number_text(ratio, 2) + " times" : "-";
  char text[32];
  const double percent = 100.0 * (ratio - 1.0);
  std::snprintf(text, sizeof(text), "%+.1f %%", std::fabs(percent) < 0.05 ? 0.0 : percent);
  return text;
}

void print_figures(const Exercise& exercise, const Predictions& predictions) {
  std::printf("%-20s %12s %12s %11s\n", "figure", "predicted", "measured", "difference");
  for (const Figure& figure : exercise.figures) {
    const double predicted = *predictions.at(figure.name), measured = figure.measure();
    std::printf("%-20s %12s %12s %11s\n  %s\n  %s\n", figure.name.c_str(),
                number_text(predicted).c_str(), number_text(measured).c_str(),
                difference_of(figure, predicted, measured).c_str(), figure.meaning.c_str(),
                figure.accuracy.c_str());
  }
}

int print_line(const Exercise& exercise, const Report& report) {
  std::string predicted;
  try {
    predicted = all_are_there(predictions_of(exercise)) ? "yes" : "no";
  } catch (const Error&) {
    predicted = "wrong";
  }
  std::printf("%s,%s,%d,%d,%s\n", exercise.folder.c_str(), report.ok() ? "passed" : "failed",
              report.passed, report.cases, predicted.c_str());
  return report.ok() ? 0 : 1;
}

int print_all(const Exercise& exercise) {
  std::printf("exercise    %s\n", exercise.folder.c_str());
  const Report report = exercise.check();
  print_check(report);
  if (!report.ok()) {
    std::printf("file        %s\n", path_of(exercise, exercise.file).c_str());
    return 1;
  }
  const Predictions predictions = predictions_of(exercise);
  if (exercise.known) std::printf("known       %s\n", exercise.known().c_str());
  if (all_are_there(predictions))
    print_figures(exercise, predictions);
  else
    ask_for(exercise, predictions);
  return 0;
}

}  // namespace

int run_exercise(const Exercise& exercise, int argc, char** argv) {
  const bool line = argc == 2 && std::string(argv[1]) == "--csv";
  if (argc > 1 && !line) {
    std::fprintf(stderr, "usage: %s [--csv]\n", argv[0]);
    return 2;
  }
  try {
    return line ? print_line(exercise, exercise.check()) : print_all(exercise);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

}  // namespace duplex::course
