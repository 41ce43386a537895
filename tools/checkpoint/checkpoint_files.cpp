#include "tools/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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

constexpr int format_version = 2;
constexpr std::size_t kept = 2;
constexpr std::uint64_t most_ranks = 65536;
const std::string step_prefix = "step-", rank_prefix = "rank-", file_suffix = ".safetensors";

std::string folder(const std::string& run_directory, std::uint64_t steps) {
  char number[32];
  std::snprintf(number, sizeof number, "%010llu/", static_cast<unsigned long long>(steps));
  return run_directory + "/" + checkpoints_folder + "/" + step_prefix + number;
}

std::string file_of(int rank) {
  return rank_prefix + std::to_string(rank) + file_suffix;
}

/// The number in a name; none: the name is another.
std::optional<std::uint64_t> number_between(const std::string& name, const std::string& prefix,
                                            const std::string& suffix) {
  if (name.size() <= prefix.size() + suffix.size() || name.rfind(prefix, 0) != 0 ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
    return std::nullopt;
  const std::string digits =
      name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  if (digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoull(digits);
}

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

CheckpointFiles::CheckpointFiles(std::string run_directory, int rank, int ranks,
                                 std::string settings)
    : run_directory_(std::move(run_directory)),
      rank_(rank),
      ranks_(ranks),
      settings_(std::move(settings)) {}

std::string CheckpointFiles::path(std::uint64_t steps) const {
  return folder(run_directory_, steps) + file_of(rank_);
}

/// The steps of all checkpoints that have a folder, newest first.
std::vector<std::uint64_t> CheckpointFiles::all_steps() const {
  std::vector<std::uint64_t> found;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(run_directory_ + "/" + checkpoints_folder, error)) {
    const auto steps = number_between(entry.path().filename().string(), step_prefix, "");
    if (steps) found.push_back(*steps);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

/// The files of a checkpoint that are here, in the order of their ranks.
std::vector<CheckpointFiles::File> CheckpointFiles::files(std::uint64_t steps) const {
  std::vector<File> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder(run_directory_, steps), error)) {
    const auto rank = number_between(entry.path().filename().string(), rank_prefix, file_suffix);
    if (rank && *rank <= most_ranks && entry.is_regular_file(error))
      found.push_back({static_cast<int>(*rank), entry.path().string()});
  }
  std::sort(found.begin(), found.end(),
            [](const File& a, const File& b) { return a.rank < b.rank; });
  return found;
}

/// Returns whether a file is this rank's to remove: its own, or that of a rank which is no more.
bool CheckpointFiles::keeps(int rank) const {
  return rank == rank_ || (rank >= ranks_ && rank % ranks_ == rank_);
}

/// The steps of all checkpoints with a file that is this rank's to remove, newest first.
std::vector<std::uint64_t> CheckpointFiles::steps_there() const {
  std::vector<std::uint64_t> found;
  for (const std::uint64_t steps : all_steps()) {
    const std::vector<File> there = files(steps);
    if (std::any_of(there.begin(), there.end(),
                    [this](const File& file) { return keeps(file.rank); }))
      found.push_back(steps);
  }
  return found;
}

std::vector<Checkpoint> CheckpointFiles::whole() const {
  std::vector<Checkpoint> found;
  for (const std::uint64_t steps : all_steps())
    if (auto checkpoint = whole_at(steps, found.empty())) found.push_back(std::move(*checkpoint));
  return found;
}

/// Returns whether the settings are those of this training. Throws Error if they are not and the
/// checkpoint is the newest.
bool CheckpointFiles::fits(const std::string& path, const std::string& settings,
                           bool newest) const {
  if (settings == settings_) return true;
  if (!newest) return false;
  const std::string more = only_in(settings, settings_), other = only_in(settings_, settings);
  throw Error("--resume: " + path + " is of another training: it has " +
                  (more.empty() ? "less" : more) + ", and this one has " +
                  (other.empty() ? "less" : other),
              Exit::usage);
}

/// The checkpoint of so many steps. If this rank has a file by as many ranks, that one counts; else
/// the files by the number of ranks that the first of them says.
std::optional<Checkpoint> CheckpointFiles::whole_at(std::uint64_t steps, bool newest) const {
  std::vector<File> there = files(steps);
  std::stable_partition(there.begin(), there.end(),
                        [this](const File& file) { return file.rank == rank_; });
  Checkpoint checkpoint;
  checkpoint.steps = steps;
  std::vector<File> taken;
  for (const File& file : there) {
    std::map<std::string, std::string> metadata;
    try {
      metadata = metadata_of(file.path, steps);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s; it is left out\n", error.what());
      continue;
    }
    const int ranks = std::atoi(metadata["ranks"].c_str());
    const bool own = file.rank == rank_ && ranks == ranks_;
    if (ranks == ranks_ && !own) continue;  // It is of no use without this rank's own.
    if (file.rank >= ranks || (!taken.empty() && ranks != checkpoint.ranks)) continue;
    if (!fits(file.path, metadata["settings"], newest)) continue;
    if (taken.empty()) checkpoint.metadata = metadata;
    taken.push_back(file);
    checkpoint.ranks = ranks;
    checkpoint.samples = std::strtoull(metadata["samples"].c_str(), nullptr, 10);
    checkpoint.rescued = checkpoint.rescued || !metadata["rescued"].empty();
    if (own) break;
  }
  if (taken.empty()) return std::nullopt;
  std::sort(taken.begin(), taken.end(),
            [](const File& a, const File& b) { return a.rank < b.rank; });
  for (const File& file : taken) checkpoint.paths.push_back(file.path);
  return checkpoint;
}

std::vector<Checkpoint> CheckpointFiles::of_other_ranks(const std::string& key) const {
  std::vector<Checkpoint> found;
  for (const std::uint64_t steps : all_steps())
    for (const File& file : files(steps)) {
      if (file.rank == rank_) continue;
      try {
        if (SafetensorsFile(file.path).metadata().count(key) == 0) continue;
        Checkpoint checkpoint;
        checkpoint.metadata = metadata_of(file.path, steps);
        checkpoint.steps = steps;
        checkpoint.ranks = std::atoi(checkpoint.metadata["ranks"].c_str());
        checkpoint.paths = {file.path};
        checkpoint.rescued = !checkpoint.metadata["rescued"].empty();
        if (checkpoint.ranks == ranks_ && checkpoint.metadata["settings"] == settings_)
          found.push_back(std::move(checkpoint));
      } catch (const Error& error) {
        std::fprintf(stderr, "%s; it is left out\n", error.what());
      }
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
  metadata["ranks"] = std::to_string(ranks_);
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
  for (const File& file : files(steps))
    if (keeps(file.rank)) fs::remove(file.path, error);
  fs::remove(folder(run_directory_, steps), error);  // Where no other rank has a file in it.
}

}  // namespace duplex::tools
