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
#include "core/files/output_file.h"
#include "core/files/safetensors.h"
#include "core/list_text.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

namespace fs = std::filesystem;

constexpr int format_version = 2;
constexpr std::size_t kept = 2;
constexpr std::uint64_t most_ranks = 65536;
const std::string step_prefix = "step-", rank_prefix = "rank-", file_suffix = ".safetensors",
                  copy_suffix = "-copy.safetensors";

std::string folder(const std::string& run_directory, std::uint64_t steps) {
  char number[32];
  std::snprintf(number, sizeof number, "%010llu/", static_cast<unsigned long long>(steps));
  return run_directory + "/" + checkpoints_folder + "/" + step_prefix + number;
}

std::string file_of(int rank, bool copy) {
  return rank_prefix + std::to_string(rank) + (copy ? copy_suffix : file_suffix);
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

/// The file's metadata. Throws Error if it is not a whole checkpoint.
std::map<std::string, std::string> metadata_of(const std::string& path) {
  const SafetensorsFile file(path);
  file.verify();
  std::map<std::string, std::string> metadata = file.metadata();
  if (metadata["checkpoint_version"] != std::to_string(format_version))
    throw Error(path + " is of another version of duplex");
  return metadata;
}

/// The same of a checkpoint of that many steps; of others it throws Error, too.
std::map<std::string, std::string> metadata_of(const std::string& path, std::uint64_t steps) {
  std::map<std::string, std::string> metadata = metadata_of(path);
  if (metadata["steps"] != std::to_string(steps))
    throw Error(path + " is of " + metadata["steps"] + " steps, which is not what its folder says");
  return metadata;
}

}  // namespace

CheckpointFiles::CheckpointFiles(std::string run_directory, int rank, int ranks,
                                 std::string settings, std::vector<int> kept, Removes removes)
    : run_directory_(std::move(run_directory)),
      rank_(rank),
      ranks_(ranks),
      settings_(std::move(settings)),
      kept_(std::move(kept)),
      removes_(removes) {}

std::string CheckpointFiles::path(std::uint64_t steps, int rank, bool copy) const {
  return folder(run_directory_, steps) + file_of(rank, copy);
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

/// Returns the file that lies there; with `parts`, also that of which this is a part, since a
/// program that was killed has left what it had written of it (core/files/output_file.h). None: its
/// name is another.
std::optional<CheckpointFiles::File> CheckpointFiles::file_at(const fs::path& path, bool parts) {
  std::string name = path.filename().string();
  if (parts) name.resize(std::min(name.rfind(".tmp-"), name.size()));
  const auto copy = number_between(name, rank_prefix, copy_suffix);
  const auto rank = copy ? copy : number_between(name, rank_prefix, file_suffix);
  if (!rank || *rank > most_ranks) return std::nullopt;
  return File{static_cast<int>(*rank), copy.has_value(), path.string()};
}

/// The files of a checkpoint that are here, in the order of their ranks, copies behind what they
/// are of.
std::vector<CheckpointFiles::File> CheckpointFiles::files(std::uint64_t steps) const {
  std::vector<File> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder(run_directory_, steps), error)) {
    auto file = file_at(entry.path(), false);
    if (file && entry.is_regular_file(error)) found.push_back(std::move(*file));
  }
  std::sort(found.begin(), found.end(), [](const File& a, const File& b) {
    return std::pair(a.rank, a.copy) < std::pair(b.rank, b.copy);
  });
  return found;
}

/// Returns whether this rank writes such a file.
bool CheckpointFiles::writes(const File& file) const {
  if (!file.copy) return file.rank == rank_;
  return std::find(kept_.begin(), kept_.end(), file.rank) != kept_.end();
}

bool CheckpointFiles::removes(const File& file) const {
  return removes_ == Removes::all || writes(file) ||
         (file.rank >= ranks_ && file.rank % ranks_ == rank_);
}

bool CheckpointFiles::has_written(std::uint64_t steps) const {
  const std::vector<File> there = files(steps);
  return std::any_of(there.begin(), there.end(), [this](const File& file) { return writes(file); });
}

bool CheckpointFiles::any() const {
  const std::vector<std::uint64_t> steps = all_steps();
  return std::any_of(steps.begin(), steps.end(),
                     [this](std::uint64_t each) { return has_written(each); });
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

/// The checkpoint of so many steps, by the number of ranks that the first whole file says; this
/// rank's own is looked at first.
std::optional<Checkpoint> CheckpointFiles::whole_at(std::uint64_t steps, bool newest) const {
  std::vector<File> there = files(steps);
  std::stable_partition(there.begin(), there.end(),
                        [this](const File& file) { return file.rank == rank_ && !file.copy; });
  const auto is_here = [&there](int rank) {
    return std::any_of(there.begin(), there.end(),
                       [rank](const File& each) { return each.rank == rank && !each.copy; });
  };
  Checkpoint checkpoint;
  checkpoint.steps = steps;
  for (const File& file : there) {
    if (checkpoint.own && (!file.copy || is_here(file.rank))) continue;
    std::map<std::string, std::string> metadata;
    try {
      metadata = metadata_of(file.path, steps);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s; it is left out\n", error.what());
      continue;
    }
    const int ranks = std::atoi(metadata["ranks"].c_str());
    if (file.rank >= ranks || (!checkpoint.files.empty() && ranks != checkpoint.ranks)) continue;
    if (!fits(file.path, metadata["settings"], newest)) continue;
    if (checkpoint.files.empty()) checkpoint.metadata = metadata;
    checkpoint.files.push_back({file.rank, file.copy, !metadata["partial"].empty(), file.path});
    checkpoint.ranks = ranks;
    checkpoint.samples = std::strtoull(metadata["samples"].c_str(), nullptr, 10);
    checkpoint.rescued = checkpoint.rescued || !metadata["rescued"].empty();
    checkpoint.own = checkpoint.own || (ranks == ranks_ && file.rank == rank_ && !file.copy);
  }
  if (checkpoint.files.empty()) return std::nullopt;
  if (!checkpoint.own)
    std::stable_sort(
        checkpoint.files.begin(), checkpoint.files.end(),
        [](const CheckpointFile& a, const CheckpointFile& b) { return a.rank < b.rank; });
  return checkpoint;
}

std::vector<Checkpoint> CheckpointFiles::of_other_ranks(const std::string& key) const {
  std::vector<Checkpoint> found;
  for (const std::uint64_t steps : all_steps())
    for (const File& file : files(steps)) {
      if (file.rank == rank_ || file.copy) continue;
      try {
        if (SafetensorsFile(file.path).metadata().count(key) == 0) continue;
        Checkpoint checkpoint = checkpoint_in(file.path, file.rank, metadata_of(file.path, steps));
        if (checkpoint.ranks == ranks_ && checkpoint.metadata["settings"] == settings_)
          found.push_back(std::move(checkpoint));
      } catch (const Error& error) {
        std::fprintf(stderr, "%s; it is left out\n", error.what());
      }
    }
  return found;
}

Checkpoint CheckpointFiles::checkpoint_in(const std::string& path, int rank,
                                          Metadata metadata) const {
  Checkpoint checkpoint;
  checkpoint.steps = std::strtoull(metadata["steps"].c_str(), nullptr, 10);
  checkpoint.ranks = std::atoi(metadata["ranks"].c_str());
  checkpoint.files = {{rank, false, false, path}};
  checkpoint.rescued = !metadata["rescued"].empty();
  checkpoint.metadata = std::move(metadata);
  return checkpoint;
}

Checkpoint CheckpointFiles::received_from(const std::string& path, int rank) const {
  Checkpoint checkpoint = checkpoint_in(path, rank, metadata_of(path));
  if (checkpoint.ranks != ranks_ || checkpoint.metadata["settings"] != settings_)
    throw Error(path + " has come from another rank and is of another training");
  return checkpoint;
}

CheckpointFile CheckpointFiles::received(std::uint64_t steps, int rank) const {
  CheckpointFile file{rank, false, false, path(steps, rank, false)};
  auto metadata = metadata_of(file.path, steps);
  if (metadata["settings"] != settings_)
    throw Error(file.path + " has come from another rank and is of another training");
  file.partial = metadata.count("partial") != 0;
  return file;
}

void CheckpointFiles::write(std::uint64_t steps, const std::vector<StateArray>& arrays,
                            const Metadata& more) const {
  sync_rows();
  write_file(path(steps), steps, arrays, more);
  std::error_code error;
  fs::remove(note(), error);
}

void CheckpointFiles::sync_rows() const {
  for (const char* file : {metrics_file, accuracy_file}) sync_file(run_directory_ + "/" + file);
}

void CheckpointFiles::write_copy(std::uint64_t steps, int rank,
                                 const std::vector<StateArray>& arrays,
                                 const Metadata& more) const {
  write_file(path(steps, rank, true), steps, arrays, more);
}

void CheckpointFiles::write_file(const std::string& file, std::uint64_t steps,
                                 const std::vector<StateArray>& arrays,
                                 const Metadata& more) const {
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
    // The file's folder may be new, and so may the one around it.
    sync_folder(run_directory_ + "/" + checkpoints_folder);
    sync_folder(run_directory_);
  } catch (...) {
    fs::remove(fs::path(file).parent_path(), error);  // An empty folder is no checkpoint.
    throw;
  }
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
  if (!fs::exists(note(), error)) return false;
  const std::vector<std::uint64_t> steps = all_steps();
  return std::none_of(steps.begin(), steps.end(),
                      [this](std::uint64_t each) { return fs::exists(path(each)); });
}

void CheckpointFiles::keep_newest(const std::set<std::uint64_t>& useless) const {
  std::size_t useful = 0;
  for (const std::uint64_t steps : all_steps()) {
    const bool counts = useless.count(steps) == 0;
    if (!counts || useful >= kept) remove(steps);
    if (counts && has_written(steps)) ++useful;
  }
}

void CheckpointFiles::remove_after(std::uint64_t steps) const {
  for (const std::uint64_t each : all_steps())
    if (each > steps) remove(each);
}

void CheckpointFiles::remove(std::uint64_t steps) const {
  std::error_code error;
  std::vector<fs::path> gone;
  for (const auto& entry : fs::directory_iterator(folder(run_directory_, steps), error)) {
    const auto file = file_at(entry.path(), true);
    if (file && removes(*file)) gone.push_back(entry.path());
  }
  for (const fs::path& path : gone) fs::remove(path, error);
  fs::remove(folder(run_directory_, steps), error);  // Where no other rank has a file in it.
}

}  // namespace duplex::tools
