// An exercise: its check, what the student predicts, and what is measured afterwards.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "course/harness/report.h"

namespace duplex::course {

/// A figure that the student writes down before it is measured.
struct Figure {
  std::string name;      ///< This is its word in prediction.txt.
  std::string meaning;   ///< This says what it is, with its unit.
  std::string accuracy;  ///< This says how near a prediction by the page's formula comes.
  std::function<double()> measure;
  double nothing = 0.0;  ///< Up to this the figure is 0 but for rounding.
};

struct Exercise {
  std::string folder;  ///< The exercise's folder in course/, such as "01_convolution".
  std::string file;    ///< The student writes this file, in that folder.
  std::function<Report()> check;
  /// Says what the student needs in order to predict; it runs after a check that passed.
  std::function<std::string()> known;
  std::vector<Figure> figures;
};

/// This is what main() of an exercise does: checks, then compares predictions with measurements.
/// Prints all of it, or with the argument --csv one line: exercise, check, predictions. Returns 0
/// where the check passed, 1 where not or where something is wrong with the predictions, 2 for
/// other arguments.
int run_exercise(const Exercise& exercise, int argc, char** argv);

}  // namespace duplex::course
