#include "tools/planning/known_plan.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "core/files/output_file.h"
#include "tools/text/version.h"

namespace duplex::tools {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : "";
}

/// Returns when a file or folder was changed, as a line.
std::string time_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? "" : std::to_string(time.time_since_epoch().count()) + "\n";
}

std::string question_file(const std::string& plan) {
  return plan + ".question";
}

}  // namespace

std::string plan_question(const std::vector<std::string>& words, const std::string& nodefile) {
  std::string question = std::string(built_commit) + "\n";
  // A run that is given no key makes one, which has another name each time.
  for (std::size_t i = 0; i < words.size(); ++i) {
    question += words[i] + "\n";
    // Files may have changed under the same names.
    if (words[i] == "--net" && i + 1 < words.size()) question += text_of(words[i + 1]);
    if (words[i] == "--datadir" && i + 1 < words.size()) question += time_of(words[i + 1]);
    if (words[i] == "--key") ++i;
  }
  return question + text_of(nodefile);
}

void keep_question(const std::string& plan, const std::string& question) {
  write_file(question_file(plan), question);
}

std::string find_plan(const std::string& runs, const std::string& question) {
  namespace fs = std::filesystem;
  std::string best;
  std::error_code error;
  fs::file_time_type newest =
      fs::file_time_type::clock::now() -
      std::chrono::duration_cast<fs::file_time_type::duration>(
          std::chrono::duration<double, std::ratio<3600>>(known_plan_hours));
  for (fs::directory_iterator each(runs, error), end; !error && each != end;
       each.increment(error)) {
    const std::string plan = (each->path() / "plan.json").string();
    std::error_code missing;
    const fs::file_time_type time = fs::last_write_time(plan, missing);
    if (missing || time <= newest || text_of(question_file(plan)) != question) continue;
    newest = time;
    best = plan;
  }
  return best;
}

}  // namespace duplex::tools
