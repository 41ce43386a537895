#include "tools/checkpoint/checkpoints.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/clock.h"
#include "core/error.h"
#include "core/files/safetensors.h"
#include "core/list_text.h"
#include "tools/checkpoint/stop_signals.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

namespace fs = std::filesystem;

constexpr int format_version = 1;
constexpr std::size_t kept = 2;
const std::string step_prefix = "step-";

/// The steps of all checkpoints that have a file of this rank, newest first.
std::vector<std::uint64_t> steps_there(const std::string& run_directory, int rank) {
  std::vector<std::uint64_t> found;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(run_directory + "/" + checkpoints_folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(step_prefix, 0) != 0) continue;
    const std::string digits = name.substr(step_prefix.size());
    if (digits.empty() || digits.size() > 18 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    const std::uint64_t steps = std::stoull(digits);
    if (fs::exists(checkpoint_path(run_directory, steps, rank), error)) found.push_back(steps);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
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

std::string checkpoint_path(const std::string& run_directory, std::uint64_t steps, int rank) {
  char folder[32];
  std::snprintf(folder, sizeof folder, "%010llu", static_cast<unsigned long long>(steps));
  return run_directory + "/" + checkpoints_folder + "/" + step_prefix + folder + "/rank-" +
         std::to_string(rank) + ".safetensors";
}

std::optional<Checkpoint> newest_checkpoint(const std::string& run_directory, int rank,
                                            const std::string& settings) {
  for (const std::uint64_t steps : steps_there(run_directory, rank)) {
    const std::string path = checkpoint_path(run_directory, steps, rank);
    std::map<std::string, std::string> metadata;
    try {
      metadata = metadata_of(path, steps);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s; the checkpoint before it is tried\n", error.what());
      continue;
    }
    const std::string& theirs = metadata["settings"];
    if (theirs != settings) {
      const std::string more = only_in(theirs, settings), other = only_in(settings, theirs);
      throw Error("--resume: " + path + " is of another training: it has " +
                      (more.empty() ? "less" : more) + ", and this one has " +
                      (other.empty() ? "less" : other),
                  Exit::usage);
    }
    return Checkpoint{steps, path};
  }
  return std::nullopt;
}

CheckpointWriter::CheckpointWriter(std::string run_directory, int rank, CheckpointPlan plan,
                                   std::string settings, std::uint64_t first,
                                   std::vector<StateArray> arrays, Troubles& troubles)
    : run_directory_(std::move(run_directory)),
      rank_(rank),
      plan_(plan),
      settings_(std::move(settings)),
      arrays_(std::move(arrays)),
      troubles_(troubles),
      last_(first),
      written_(clock_ns()) {}

bool CheckpointWriter::due(std::uint64_t steps) const {
  if (plan_.steps != 0 && steps / plan_.steps > last_ / plan_.steps) return true;
  return plan_.seconds > 0.0 && duplex::seconds(clock_ns() - written_) >= plan_.seconds;
}

bool CheckpointWriter::after(std::uint64_t steps, const std::function<void()>& await_weights) {
  const int stop = StopSignals::stop();
  const bool asked = StopSignals::take_checkpoint_request() || stop != 0;
  if (!asked && !due(steps)) return true;
  await_weights();
  bool written = true;
  if (stop == 0)
    written = try_to_write(steps);
  else
    write(steps);
  if (asked && written)
    std::fprintf(stderr, "%s: checkpoint after %llu steps in %s\n",
                 signal_name(stop != 0 ? stop : SIGUSR1), static_cast<unsigned long long>(steps),
                 checkpoint_path(run_directory_, steps, rank_).c_str());
  return stop == 0;
}

bool CheckpointWriter::try_to_write(std::uint64_t steps) {
  try {
    write(steps);
    return true;
  } catch (const Error& error) {
    troubles_.add(error.what());
    std::error_code ignored;  // An empty folder is no checkpoint.
    fs::remove(fs::path(checkpoint_path(run_directory_, steps, rank_)).parent_path(), ignored);
    return false;
  }
}

void CheckpointWriter::write(std::uint64_t steps) {
  last_ = steps;
  written_ = clock_ns();
  const std::string path = checkpoint_path(run_directory_, steps, rank_);
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) throw Error(path + " cannot be written: " + error.message());
  save_state(path, arrays_,
             {{"checkpoint_version", std::to_string(format_version)},
              {"steps", std::to_string(steps)},
              {"settings", settings_}});
  const std::vector<std::uint64_t> there = steps_there(run_directory_, rank_);
  for (std::size_t i = kept; i < there.size(); ++i) {
    const fs::path old = checkpoint_path(run_directory_, there[i], rank_);
    fs::remove(old, error);
    fs::remove(old.parent_path(), error);  // Where no other rank has a file in it.
  }
}

}  // namespace duplex::tools
