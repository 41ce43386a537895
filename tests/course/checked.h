// Checks of the course that must pass, and that must fail with certain words.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "course/harness/exercise.h"

namespace duplex::course::test {

inline void expect_right(const Exercise& exercise) {
  const Report report = exercise.check();
  EXPECT_TRUE(report.ok()) << report.failed << ": " << report.complaint;
  EXPECT_EQ(report.passed, report.cases);
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas no \"" << part << '"';
}

/// The name of the case that fails has `in` in it, the complaint `complaint`.
inline void expect_wrong(const Exercise& exercise, const std::string& in,
                         const std::string& complaint) {
  const Report report = exercise.check();
  expect_has(report.failed, in);
  expect_has(report.complaint, complaint);
}

}  // namespace duplex::course::test
