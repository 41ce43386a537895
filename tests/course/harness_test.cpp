// Whatever a student's code does, the check goes on and says what it was.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <new>
#include <stdexcept>

#include "core/error.h"
#include "course/harness/child.h"
#include "course/harness/predictions.h"
#include "course/harness/report.h"
#include "tests/course/checked.h"
#include "tests/temporary_folder.h"

namespace duplex::course {
namespace {

using test::expect_has;
constexpr Limits short_limits{std::chrono::milliseconds(300)};

std::string complaint(const std::function<void()>& call, const Limits& limits = {}) {
  return complaint_of_call("f", {}, call, limits);
}

TEST(CourseHarness, WellBehavedCodeHasNoComplaint) {
  Guarded values("x", 3, 1.0F);
  EXPECT_EQ(complaint_of_call("f", {&values}, [&] { values.data()[2] = 5.0F; }), "");
  EXPECT_EQ(values.values(), (std::vector<float>{1.0F, 1.0F, 5.0F}));  // The parent sees it.
}

TEST(CourseHarness, EndlessLoopsEnd) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(complaint(
                [] {
                  for (volatile int i = 0;; i = i + 1) continue;
                },
                short_limits),
            "f() did not end within 0.3 s");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

int endless(int n);
int (*volatile again)(int) = endless;  // A compiler that sees the recursion warns of it.
int endless(int n) {
  volatile char space[4096] = {static_cast<char>(n)};
  return again(n + 1) + space[0];
}

TEST(CourseHarness, CrashesAreExplained) {
  if (built_with_sanitizer)
    GTEST_SKIP() << "a sanitizer ends a program that crashes with a report of its own";
  expect_has(complaint([] { *static_cast<volatile int*>(nullptr) = 1; }), "pointer that is null");
  expect_has(complaint([] { std::abort(); }), "f() was aborted");
  expect_has(complaint([] { std::raise(SIGFPE); }), "divided an integer by zero");
  expect_has(complaint([] { std::exit(0); }), "f() ended the program");
  expect_has(complaint([] { throw std::runtime_error("no idea"); }), "threw an exception: no idea");
  expect_has(complaint([] { throw 5; }), "no std::exception");
  expect_has(complaint([] { endless(0); }), "a recursion has no end");
}

TEST(CourseHarness, FilesAreFew) {
  if (built_with_sanitizer) GTEST_SKIP() << "a sanitizer opens files itself, so there is no limit";
  EXPECT_EQ(complaint([] {
              for (int i = 0; i < 100; ++i)
                if (std::fopen("/dev/null", "r") == nullptr) throw std::runtime_error("no more");
            }),
            "f() threw an exception: no more");
}

TEST(CourseHarness, MemoryIsLimited) {
  if (built_with_sanitizer)
    GTEST_SKIP() << "a sanitizer needs more memory than any limit, so there is none";
  expect_has(complaint([] {
               std::vector<char> much(std::size_t{8} << 30);
               volatile char last = much.back();
               static_cast<void>(last);
             }),
             "more memory than it may have");
}

TEST(CourseHarness, PlacesAreNamed) {
  Guarded x("x", 5, 0.0F), y("y", 1024, 0.0F);
  x.seal();
  const auto touch = [&](float* at) {
    return complaint_of_call("f", {&x, &y}, [at] { *at = 1.0F; });
  };
  EXPECT_EQ(touch(x.data() + 4), "f() touched memory in x, which is only to be read");
  EXPECT_EQ(touch(y.data() + 1024), "f() touched memory 1 element beyond the end of y");
  EXPECT_EQ(touch(y.data() + 1030), "f() touched memory 7 elements beyond the end of y");
  EXPECT_EQ(touch(y.data() - 2), "f() touched memory 2 elements before the beginning of y");
  Guarded z("z", 5, 0.0F);
  EXPECT_EQ(complaint_of_call("f", {&z}, [&] { z.data()[-1] = 1.0F; }),
            "f() wrote before the beginning of z");
}

TEST(CourseHarness, ValuesThatAreNotFiniteAreWrong) {
  const auto place = [](std::size_t i) { return "y" + std::to_string(i); };
  const float values[] = {1.0F, std::numeric_limits<float>::quiet_NaN(), 3.0F};
  EXPECT_EQ(complaint_of_values(values, {1.0F, 2.0F, 3.0F}, 1e-5F, place),
            "y1 is nan, expected 2; wrong: 1 of 3 values (outputs are nan until they are set)");
  EXPECT_EQ(complaint_of_values(values, {1.0F}, 1e-5F, place), "");
  const float near[] = {1.0F, 2.0001F};
  EXPECT_EQ(complaint_of_values(near, {1.0F, 2.0F}, 1e-4F, place), "");
  EXPECT_NE(complaint_of_values(near, {1.0F, 2.0F}, 1e-5F, place), "");
}

class CoursePredictions : public ::testing::Test {
 protected:
  std::string path_of(const std::string& text) {
    std::ofstream(folder_.path() + "/prediction.txt") << text;
    return folder_.path() + "/prediction.txt";
  }
  void expect_error(const std::string& text, const std::string& message) {
    const std::string path = path_of(text);
    try {
      read_predictions(path, {"a", "b"});
      ADD_FAILURE() << "no error for " << text;
    } catch (const Error& error) {
      expect_has(error.what(), message);
    }
  }
  TemporaryFolder folder_;
};

TEST_F(CoursePredictions, AreReadOrStillOpen) {
  const auto found = read_predictions(path_of("# why\n\n a = 1.5e3 \r\nb=?\n"), {"a", "b"});
  EXPECT_EQ(found.at("a"), 1500.0);
  EXPECT_FALSE(found.at("b").has_value());
}

TEST_F(CoursePredictions, EveryLineMustBeUnderstood) {
  expect_error("a = 1\n", "b is missing; add a line: b = ?");
  expect_error("a = 1\nb = many\n", "line 2: \"many\" is no number");
  expect_error("a = 1\nb =\n", "line 2: \"\" is no number");
  expect_error("a = nan\nb = 1\n", "line 1: \"nan\" is no number");
  expect_error("a = 1 s\nb = 1\n", "\"1 s\" is no number");
  expect_error("a = 1\na = 2\nb = 1\n", "line 2: a is there twice");
  expect_error("a = 1\nb = 2\nc = 3\n", "line 3: there is no figure \"c\"");
  expect_error("a 1\n", "line 1: expected name = number");
  EXPECT_THROW(read_predictions(folder_.path() + "/none", {"a"}), Error);
}

}  // namespace
}  // namespace duplex::course
