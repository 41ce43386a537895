#include "tools/deploy/deployment.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "tools/launch/words.h"
#include "tools/tensorboard/event_file.h"

namespace duplex::tools {
namespace fs = std::filesystem;
namespace {

const std::string replay = "replay:";

std::string absolute(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

bool is_file(const std::string& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

/// Returns the file in which other machines write what --save asks for, until it is brought home.
std::string saved_name(const std::string& save) {
  return "saved-" + fs::path(save).filename().string();
}

}  // namespace

void Deployment::take(const std::vector<std::string>& dist, std::optional<bool> data,
                      bool own_key) {
  const std::string key = value_of(dist, "--key"), weights = value_of(dist, "--weights");
  if (!key.empty()) take_text("--key", key);
  if (own_key) own_key_ = cargo_.texts.back().name();
  if (!weights.empty()) {
    cargo_.files.push_back(deployed_file(weights));
    there_["--weights"] = target_.path_of(cargo_.files.back());
  }
  const std::string device = value_of(dist, "--device");
  if (device.rfind(replay, 0) == 0 && is_file(device.substr(replay.size()))) {
    take_text("--device", device.substr(replay.size()));
    there_["--device"] = replay + there_["--device"];
  }
  const std::string path = value_of(dist, "--datadir");
  if (!path.empty())
    take_data(path, data);
  else if (data.value_or(false))
    throw Error("launch: --deploy-data sends the data set of --datadir, which is not given",
                Exit::usage);
}

void Deployment::take_data(const std::string& path, std::optional<bool> data) {
  const std::string pack = "`duplex pack --datadir " + path + " --output FILE`";
  if (data.value_or(true) && is_file(path)) {
    cargo_.files.push_back(deployed_file(path));
    there_["--datadir"] = target_.path_of(cargo_.files.back());
    return;
  }
  const bool folder = fs::is_directory(path);
  if (data.value_or(false))
    throw Error("launch: --deploy-data: " + path +
                    (folder ? " is a folder: " + pack + " makes a file of it, which can be sent"
                            : std::string(" is no file on this machine")),
                Exit::usage);
  there_["--datadir"] = absolute(path);
  if (!data && folder)
    std::fprintf(stderr,
                 "launch: %s is a folder, which is not sent: every machine has to have it there "
                 "(%s makes a file of it, which is sent)\n",
                 absolute(path).c_str(), pack.c_str());
}

void Deployment::take_text(const std::string& flag, const std::string& path) {
  cargo_.texts.push_back(deployed_file(path));
  there_[flag] = target_.path_of(cargo_.texts.back());
}

void Deployment::send(const Bundle* bundle, const std::string& run) {
  cargo_.bundle = bundle;
  cargo_.run = run;
  deploy(target_, machines_, cargo_, own_key_.empty() ? nullptr : &has_key_);
  cargo_ = {};
}

std::vector<std::string> Deployment::words_there(std::vector<std::string> words) const {
  for (const auto& [flag, value] : there_) replace_value(words, flag, value);
  const std::string run = target_.run_path(value_of(words, "--logdir"));
  const std::string save = value_of(words, "--save");
  if (!save.empty()) replace_value(words, "--save", run + "/" + saved_name(save));
  // Files of the run directory are brought home; folders in it are not.
  if (!value_of(words, "--tensorboard").empty()) replace_value(words, "--tensorboard", run);
  replace_value(words, "--logdir", run);
  return words;
}

void Deployment::end(const std::vector<std::string>& dist, bool ended_well,
                     const std::vector<std::string>& lost) const {
  const std::string logdir = value_of(dist, "--logdir"), save = value_of(dist, "--save");
  const auto move_events = [&] {
    const std::string folder = value_of(dist, "--tensorboard");
    if (folder.empty() || !fs::is_directory(logdir)) return;
    std::vector<fs::path> events;
    for (const auto& entry : fs::directory_iterator(logdir))
      if (is_event_file(entry.path().filename())) events.push_back(entry.path());
    try {
      if (!events.empty()) fs::create_directories(folder);
      for (const fs::path& path : events) move_file(path, fs::path(folder) / path.filename());
    } catch (const fs::filesystem_error& error) {
      throw Error("launch: the event files are in " + logdir + ", and cannot be moved to " +
                  folder + ": " + error.code().message());
    }
  };
  const auto move_saved = [&] {
    const std::string saved = logdir + "/" + saved_name(save);
    std::error_code none;
    if (save.empty() || !fs::exists(saved, none)) return;
    try {
      move_file(saved, save);
    } catch (const fs::filesystem_error& error) {
      throw Error("launch: the trained weights are in " + saved + ", and cannot be moved to " +
                  save + ": " + error.code().message());
    }
  };
  try {
    bring_home(target_, machines_, {logdir, there("--nodefile"), own_key_, ended_well, lost});
  } catch (const Error&) {
    move_events();
    move_saved();  // The machine that has saved them may be one of those that went well.
    throw;
  }
  move_events();
  move_saved();
}

void Deployment::give_up() const {
  remove_key(target_, {machines_.ssh, has_key_}, own_key_);
}

}  // namespace duplex::tools
