#include "tools/deploy/deploy.h"

#include <fcntl.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>

#include "core/clock.h"
#include "core/error.h"
#include "datasets/file.h"
#include "tools/deploy/archive.h"
#include "tools/deploy/call.h"
#include "tools/deploy/crowd.h"
#include "tools/deploy/scripts.h"
#include "tools/launch/private_folder.h"

namespace duplex::tools {
namespace {

/// So many bytes are to stay free: a run writes its results, and file systems need some themselves.
constexpr std::uint64_t spare = std::uint64_t{16} << 20;

std::string megabytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) * 1e-6);
  return text;
}

/// Archives of what machines lack of the bundle: most lack the same, and share one.
class Archives {
 public:
  explicit Archives(const Bundle& bundle) : bundle_(bundle) {}

  /// The path of the archive of these files. Another thread may be making it, and is waited for.
  std::string of(const std::vector<BundleFile>& files) {
    std::string key;
    for (const BundleFile& file : files) key += file.path + "\n";
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [found, made] = paths_.emplace(key, "");
    if (made || found->second.empty())
      found->second = write_archive(folder_.path() + "/" + std::to_string(paths_.size()) + ".tar",
                                    bundle_.folder(), files);
    return found->second;
  }

 private:
  const Bundle& bundle_;
  PrivateFolder folder_{"the bundle's archive"};
  std::mutex mutex_;  ///< Guards `paths_`, and one archive is made at a time.
  std::map<std::string, std::string> paths_;
};

/// The answers of a machine about itself.
struct Found {
  std::set<std::string> have;                  ///< "DIGEST PATH" of the bundle's files.
  std::map<std::string, std::string> files;    ///< Digests, by name.
  std::map<std::string, std::uint64_t> parts;  ///< Bytes, by name.
  bool whole = false, runs = false;
  std::string fails;                ///< Why the program there does not run.
  std::uint64_t free = UINT64_MAX;  ///< Bytes.
  bool ended = false;               ///< It has said all.
};

Found found_of(const CallResult& result) {
  Found found;
  for (const std::string& line : script_lines(result.out)) {
    std::istringstream words(line);
    std::string what, first, second;
    words >> what >> first;
    std::getline(words >> std::ws, second);
    if (what == "have" && second.rfind("./", 0) == 0)
      found.have.insert(first + " " + second.substr(2));
    if (what == "file") found.files[first] = second;
    if (what == "part" || what == "free") {
      std::uint64_t number = 0;
      if (std::istringstream(what == "part" ? second : first) >> number) {
        if (what == "part") found.parts[first] = number;
        // The first line of df says what the columns are.
        if (what == "free") found.free = number * 1024;
      }
    }
    found.whole = found.whole || what == "whole";
    found.runs = found.runs || what == "runs";
    if (what == "fails") found.fails = line.substr(what.size());
    found.ended = found.ended || what == "end";
  }
  return found;
}

/// The questions to a machine, as scripts.h has them.
std::string questions(const Cargo& cargo, bool here) {
  std::string text;
  if (cargo.bundle != nullptr)
    for (const BundleFile& file : cargo.bundle->files())
      text += (file.runs ? "x " : "p ") + file.path + "\n";
  if (cargo.bundle != nullptr) text += "v\n";
  if (here) return text;
  for (const DeployedFile& file : cargo.files) text += "f " + file.name() + "\n";
  for (const DeployedFile& file : cargo.texts) {
    std::ifstream from(file.path);
    std::string lines;
    int count = 0;
    for (std::string line; std::getline(from, line); ++count) lines += line + "\n";
    text += "t " + file.name() + " " + std::to_string(count) + "\n" + lines;
  }
  if (!cargo.run.empty()) text += "r " + Deployed::run_name(cargo.run) + "\n";
  return text;
}

/// The part of the work that all machines have in common.
struct Errand {
  const Deployed& target;
  const Machines& machines;
  const Cargo& cargo;
  Archives* archives;  ///< None where there is no bundle.
};

/// One machine gets what it lacks.
class Delivery {
 public:
  Delivery(const Errand& errand, std::size_t machine, Board& board, const std::atomic<bool>& stop)
      : errand_(errand),
        host_(errand.machines.hosts[machine]),
        here_(is_here(host_)),
        machine_(machine),
        board_(board),
        stop_(stop) {}

  /// Throws Error with the reason alone. `answered` becomes true when it has the small files.
  void run(bool& answered) {
    const std::int64_t begin = clock_ns();
    board_.show(machine_, "looks what is there");
    utsname system{};
    ::uname(&system);
    const CallResult looked = ask(look_script(errand_.target.folder, bundle_name(), system.machine),
                                  {questions(errand_.cargo, here_)}, {});
    const Found found = found_of(looked);
    if (looked.code != 0 || !found.ended) throw Error(looked.reason());
    answered = !here_;
    was_whole_ = found.whole;
    plan(found);
    if (need_ > 0 && need_ + spare > found.free)
      throw Error("its disk is too full for " + errand_.target.folder + ": " +
                  megabytes(need_ + spare) + " are needed, and " + megabytes(found.free) +
                  " are free");
    if (lacking_.empty() && errand_.cargo.bundle != nullptr && !found.runs)
      throw Error("its program does not run:" + found.fails);
    if (!lacking_.empty()) send_program();
    for (const auto& [file, offset] : files_) send_file(*file, offset);
    if (errand_.cargo.bundle == nullptr && sent_ == 0) return board_.show(machine_, "");
    char text[80];
    std::snprintf(text, sizeof text, ", %.1f s", seconds(clock_ns() - begin));
    board_.done(machine_, (sent_ == 0 ? "has all" : "ready: " + megabytes(sent_) + " sent") + text);
  }

 private:
  /// Finds out what has to be sent.
  void plan(const Found& found) {
    if (errand_.cargo.bundle != nullptr)
      for (const BundleFile& file : errand_.cargo.bundle->files()) {
        if (found.have.count(file.digest + " " + file.path) > 0) continue;
        lacking_.push_back(file);
        need_ += file.bytes;
      }
    // If all is there but without its name, an archive of one file ends what was begun.
    if (errand_.cargo.bundle != nullptr && !found.whole && lacking_.empty())
      lacking_.push_back(errand_.cargo.bundle->files().front());
    if (here_) return;
    for (const DeployedFile& file : errand_.cargo.files) {
      const auto whole = found.files.find(file.name());
      if (whole != found.files.end() && whole->second == file.digest) continue;
      const auto part = found.parts.find(file.name());
      const std::uint64_t offset =
          part != found.parts.end() && part->second <= file.bytes ? part->second : 0;
      files_.emplace_back(&file, offset);
      need_ += file.bytes - offset;
    }
  }

  void send_program() {
    std::vector<BundleFile> files = lacking_;
    // The script checks all files by MANIFEST, and so it always has it first.
    const BundleFile& manifest = errand_.cargo.bundle->files().front();
    if (files.front().path != manifest.path) files.insert(files.begin(), manifest);
    board_.show(machine_, "packs the program");
    send("the program", errand_.archives->of(files), 0,
         program_script(errand_.target.folder, bundle_name(), manifest.digest, was_whole_));
  }

  void send_file(const DeployedFile& file, std::uint64_t offset) {
    send(file.path, file.path, offset,
         file_script(errand_.target.folder, file.name(), file.digest, offset, file.bytes));
  }

  /// Feeds a file from `offset` on to a script.
  void send(const std::string& what, const std::string& path, std::uint64_t offset,
            const std::vector<std::string>& script) {
    const datasets::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0) throw Error(path + ": " + datasets::error_text(errno));
    const std::uint64_t bytes = datasets::ReadFile(path).bytes();
    CallInput input;
    input.file = file.number();
    input.offset = offset;
    const CallResult result = ask(script, input, [&](std::uint64_t fed) {
      board_.show(machine_,
                  "takes " + what + ", " + megabytes(offset + fed) + " of " + megabytes(bytes));
    });
    if (result.code != 0) throw Error(result.reason());
    sent_ += bytes - offset;
  }

  CallResult ask(const std::vector<std::string>& script, const CallInput& input,
                 const std::function<void(std::uint64_t)>& fed) {
    return call(script_command(errand_.machines.ssh, host_, script), input, stop_, fed);
  }

  const Errand& errand_;
  const std::string host_;
  const bool here_;
  const std::size_t machine_;
  Board& board_;
  const std::atomic<bool>& stop_;
  std::vector<BundleFile> lacking_;                                   ///< The bundle's files.
  std::vector<std::pair<const DeployedFile*, std::uint64_t>> files_;  ///< And from which byte on.
  std::uint64_t need_ = 0, sent_ = 0;
  bool was_whole_ = false;  ///< The bundle's folder had its name.
};

/// Throws Error that names the machines which have failed.
void require_all(const Machines& machines, const std::vector<std::size_t>& failed,
                 const std::string& end) {
  if (failed.empty()) return;
  std::string names;
  for (const std::size_t machine : failed)
    names += (names.empty() ? "" : ", ") + machines.hosts[machine];
  throw Error("launch: " + std::to_string(failed.size()) + " of " +
              std::to_string(machines.hosts.size()) + " machines (" + names + ") " + end);
}

}  // namespace

std::vector<std::string> script_command(const std::string& ssh, const std::string& host,
                                        const std::vector<std::string>& script) {
  if (is_here(host)) return script;
  return {ssh, "-o", "BatchMode=yes", host, joined(script)};
}

void deploy(const Deployed& target, const Machines& machines, const Cargo& cargo,
            std::vector<std::string>* answered) {
  std::optional<Archives> archives;
  if (cargo.bundle != nullptr) archives.emplace(*cargo.bundle);
  const Errand errand{target, machines, cargo, archives ? &*archives : nullptr};
  std::deque<bool> has(machines.hosts.size());  // A thread writes to its machine's.
  const auto note = [&] {
    for (std::size_t i = 0; answered != nullptr && i < has.size(); ++i)
      if (has[i]) answered->push_back(machines.hosts[i]);
  };
  std::vector<std::size_t> failed;
  try {
    failed = for_all(machines.hosts, [&](std::size_t machine, Board& board, const auto& stop) {
      Delivery(errand, machine, board, stop).run(has[machine]);
    });
  } catch (const Error&) {
    note();
    throw;
  }
  note();
  require_all(machines, failed,
              "could not be made ready, for the reasons above; nothing was started");
}

void remove_key(const Deployed& target, const Machines& machines, const std::string& key) {
  if (machines.hosts.empty() || key.empty()) return;
  try {
    for_all(machines.hosts, [&](std::size_t machine, Board&, const std::atomic<bool>& stop) {
      call(script_command(machines.ssh, machines.hosts[machine],
                          end_script(target.folder, "", key, false)),
           {}, stop);
    });
  } catch (const Error&) {
    // It was interrupted. Nothing can be joined with the key any more.
  }
}

void undeploy(const Deployed& target, const Machines& machines) {
  const auto failed =
      for_all(machines.hosts, [&](std::size_t machine, Board& board, const auto& stop) {
        const CallResult result = call(
            script_command(machines.ssh, machines.hosts[machine], remove_script(target.folder)), {},
            stop);
        if (result.code != 0) throw Error(result.reason());
        std::string said = target.folder + " is removed";
        for (const std::string& line : script_lines(result.out)) {
          if (line == "nothing") said = "there is no " + target.folder;
          if (line == "others") said += " but for files that launch --deploy has not made";
          if (line.rfind("kept ", 0) == 0)
            said += (said.find("; kept") == std::string::npos ? "; kept " : ", ") + line.substr(5);
        }
        if (said.find("; kept") != std::string::npos)
          said += ": results that are not at home (copy them, then remove the folder)";
        board.done(machine, said);
      });
  require_all(machines, failed, "could not be cleaned up, for the reasons above");
}

}  // namespace duplex::tools
