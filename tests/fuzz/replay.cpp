// Gives the targets the files of their corpus, whole, cut short, and with every bit flipped, which
// needs no fuzzer. Finds, whose names begin with "find-", are whole alone: some are the largest
// that a reader takes. Prints what GoogleTest would, so that make/test.sh counts a target as a
// test. Usage: build/tests/fuzz                      from the root of the repository
//        build/tests/fuzz NAME [FILE|FOLDER]   one target; these inputs alone, and nothing damaged
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace duplex::fuzz {
namespace {

namespace fs = std::filesystem;

/// An input that takes more seconds has hung.
constexpr unsigned most_seconds = 60;
/// Inputs are cut at most at so many lengths, and so many of their first bytes are damaged: what
/// takes longer than that adds minutes to the tests.
constexpr std::size_t cuts = 4096, damaged_bytes = 512;

/// The input that a target has been given, for the signal's handler.
const Bytes* current = nullptr;

/// Keeps the input that ended the program, where one can find it.
void keep_input(int signal) {
  const char name[] = "fuzz-find";
  const int file = ::open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const char text[] = "fuzz: the input lies in ./fuzz-find\n";
  if (current != nullptr && ::write(file, current->data(), current->size()) >= 0 &&
      ::write(STDERR_FILENO, text, sizeof text - 1) < 0)
    ::_exit(1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void give(const Target& target, const Bytes& input) {
  current = &input;
  ::alarm(most_seconds);
  target.read(input);
  ::alarm(0);
  current = nullptr;
}

/// Gives the target the input with all kinds of damage, always the same. Returns their number.
std::size_t give_damaged(const Target& target, const Bytes& input) {
  std::size_t given = 0;
  const std::size_t step = input.size() / cuts + 1;
  for (std::size_t length = 0; length < input.size(); length += step, ++given)
    give(target, Bytes(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(length)));
  Bytes damaged = input;
  for (std::size_t at = 0; at < std::min(input.size(), damaged_bytes); ++at) {
    for (int bit = 0; bit < 8; ++bit, ++given) {
      damaged[at] = static_cast<std::uint8_t>(input[at] ^ 1U << bit);
      give(target, damaged);
    }
    damaged[at] = input[at];
  }
  return given;
}

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Bytes content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

/// Runs a target as a test. Returns false where there is no input for it.
bool run(const Target& target, const fs::path& inputs, bool damage) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::printf("[ RUN      ] Fuzz.%s\n", target.name);
  std::fflush(stdout);
  std::size_t given = 0;
  for (const fs::path& path : files_of(inputs)) {
    const Bytes input = content_of(path);
    give(target, input);
    const bool find = path.filename().string().rfind("find-", 0) == 0;
    given += 1 + (damage && !find ? give_damaged(target, input) : 0);
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  std::printf("%zu inputs\n%s Fuzz.%s (%lld ms)\n", given,
              given > 0 ? "[       OK ]" : "[  FAILED  ]", target.name,
              static_cast<long long>(took.count()));
  return given > 0;
}

int replay(const std::vector<std::string>& words) {
  for (const int signal : {SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGSEGV})
    std::signal(signal, keep_input);
  int ran = 0;
  bool good = true;
  for (const Target& target : targets()) {
    if (!words.empty() && words[0] != target.name) continue;
    const fs::path corpus = fs::path("tests/fuzz/corpus") / target.name;
    good = run(target, words.size() > 1 ? fs::path(words[1]) : corpus, words.size() < 2) && good;
    ++ran;
  }
  std::printf("[==========] %d tests ran.\n", ran);
  return good && ran > 0 ? 0 : 1;
}

}  // namespace
}  // namespace duplex::fuzz

int main(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i)
    if (argv[i][0] != '-') words.emplace_back(argv[i]);  // The flags are GoogleTest's.
  return duplex::fuzz::replay(words);
}
