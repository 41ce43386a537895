// Programs that exercises start, and the data that these train with.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "core/error.h"
#include "course/measuring/program.h"
#include "course/measuring/training_data.h"
#include "tests/course/checked.h"
#include "tests/temporary_folder.h"

namespace duplex::course {
namespace {

using test::expect_has;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Measuring, WhatAProgramPrintsComesBack) {
  EXPECT_EQ(output_of("/bin/echo", {"1;2.5"}), "1;2.5\n");
  EXPECT_EQ(numbers_of("1;2.5\n"), (std::vector<double>{1.0, 2.5}));
}

TEST(Measuring, AProgramThatIsMissingFailsOrDoesNotEndIsAnError) {
  expect_has(error_of([] { output_of("/nowhere/duplex", {"launch"}); }),
             "/nowhere/duplex is missing");
  expect_has(error_of([] { output_of("/bin/false", {"launch"}); }), "/bin/false launch failed");
  const auto begin = std::chrono::steady_clock::now();
  // The first SIGTERM is ignored, as by a program that waits for others.
  expect_has(error_of([] {
               output_of("/bin/sh", {"-c", "trap 'trap - TERM' TERM; while :; do sleep 0.1; done"},
                         std::chrono::seconds(1));
             }),
             "did not end within 1 s");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(Measuring, ImagesAreTheSameEveryTime) {
  const TemporaryFolder first, second;
  write_random_images(first.path(), 20);
  write_random_images(second.path(), 20);
  for (const char* file : {"/train-images-idx3-ubyte", "/train-labels-idx1-ubyte",
                           "/t10k-images-idx3-ubyte", "/t10k-labels-idx1-ubyte"})
    EXPECT_EQ(bytes_of(first.path() + file), bytes_of(second.path() + file)) << file;
  EXPECT_EQ(bytes_of(first.path() + "/train-images-idx3-ubyte").size(), 16U + 20U * 28U * 28U);
  EXPECT_NE(bytes_of(first.path() + "/train-images-idx3-ubyte").substr(16, 784),
            bytes_of(first.path() + "/t10k-images-idx3-ubyte").substr(16, 784));
}

TEST(Measuring, WeightsThatAreNoneAreAnError) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights";
  expect_has(error_of([&] { weights_in(path); }), "there are no weights in it");
  for (const std::string& text : {std::string("abc"), std::string(8, '\xff'), std::string()}) {
    std::ofstream(path, std::ios::binary) << text;
    expect_has(error_of([&] { weights_in(path); }), "there are no weights in it");
  }
}

}  // namespace
}  // namespace duplex::course
