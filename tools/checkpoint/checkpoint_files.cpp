#include "tools/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/files/safetensors.h"
#include "core/list_text.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

namespace fs = std::filesystem;

constexpr int format_version = 1;
constexpr std::size_t kept = 2;
const std::string step_prefix = "step-";

/// The file's metadata. Throws Error if it is not whole, or not a checkpoint of that many steps.
std::map<std::string, std::string> metadata_of(const std::string& path, std::uint64_t steps) {
  const SafetensorsFile file(path);
  file.verify();
  std::map<std::string, std::string> metadata = file.metadata();
  if (metadata["checkpoint_version"] != std::to_string(format_version))
    throw Error(path + " is of another version of duplex");
  if (metadata["steps"] != std::to_string(steps))
    throw Error(path + " is of " + metadata["steps"] + " steps, which is not what its folder says");
  return metadata;
}

}  // namespace

CheckpointFiles::CheckpointFiles(std::string run_directory, int rank, std::string settings)
    : run_directory_(std::move(run_directory)), rank_(rank), settings_(std::move(settings)) {}

std::string CheckpointFiles::path(std::uint64_t steps) const {
  char folder[32];
  std::snprintf(folder, sizeof folder, "%010llu", static_cast<unsigned long long>(steps));
  return run_directory_ + "/" + checkpoints_folder + "/" + step_prefix + folder + "/rank-" +
         std::to_string(rank_) + ".safetensors";
}

/// The steps of all checkpoints that have a file of this rank, newest first.
std::vector<std::uint64_t> CheckpointFiles::steps_there() const {
  std::vector<std::uint64_t> found;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(run_directory_ + "/" + checkpoints_folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(step_prefix, 0) != 0) continue;
    const std::string digits = name.substr(step_prefix.size());
    if (digits.empty() || digits.size() > 18 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    const std::uint64_t steps = std::stoull(digits);
    if (fs::is_regular_file(path(steps), error)) found.push_back(steps);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<Checkpoint> CheckpointFiles::whole() const {
  std::vector<Checkpoint> found;
  for (const std::uint64_t steps : steps_there()) {
    const std::string file = path(steps);
    std::map<std::string, std::string> metadata;
    try {
      metadata = metadata_of(file, steps);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s; the checkpoint before it is tried\n", error.what());
      continue;
    }
    const std::string& theirs = metadata["settings"];
    if (theirs == settings_) {
      found.push_back({steps, file, !metadata["rescued"].empty()});
      continue;
    }
    if (!found.empty()) break;
    const std::string more = only_in(theirs, settings_), other = only_in(settings_, theirs);
    throw Error("--resume: " + file + " is of another training: it has " +
                    (more.empty() ? "less" : more) + ", and this one has " +
                    (other.empty() ? "less" : other),
                Exit::usage);
  }
  return found;
}

void CheckpointFiles::write(std::uint64_t steps, const std::vector<StateArray>& arrays,
                            const Metadata& more) const {
  const std::string file = path(steps);
  std::error_code error;
  fs::create_directories(fs::path(file).parent_path(), error);
  if (error) throw Error(file + " cannot be written: " + error.message());
  Metadata metadata = more;
  metadata["checkpoint_version"] = std::to_string(format_version);
  metadata["steps"] = std::to_string(steps);
  metadata["settings"] = settings_;
  try {
    save_state(file, arrays, metadata);
  } catch (...) {
    fs::remove(fs::path(file).parent_path(), error);  // An empty folder is no checkpoint.
    throw;
  }
  fs::remove(note(), error);
}

std::string CheckpointFiles::note() const {
  return run_directory_ + "/" + checkpoints_folder + "/rank-" + std::to_string(rank_) + ".begun";
}

void CheckpointFiles::note_begin() const {
  std::error_code error;
  fs::create_directories(fs::path(note()).parent_path(), error);
  std::ofstream(note()) << "This training has no checkpoint yet.\n";
}

bool CheckpointFiles::has_only_begun() const {
  std::error_code error;
  return fs::exists(note(), error) && steps_there().empty();
}

void CheckpointFiles::keep_newest(const std::set<std::uint64_t>& useless) const {
  std::size_t useful = 0;
  for (const std::uint64_t steps : steps_there())
    if (useless.count(steps) != 0 || ++useful > kept) remove(steps);
}

void CheckpointFiles::remove_after(std::uint64_t steps) const {
  for (const std::uint64_t each : steps_there())
    if (each > steps) remove(each);
}

void CheckpointFiles::remove(std::uint64_t steps) const {
  std::error_code error;
  const fs::path file = path(steps);
  fs::remove(file, error);
  fs::remove(file.parent_path(), error);  // Where no other rank has a file in it.
}

}  // namespace duplex::tools
