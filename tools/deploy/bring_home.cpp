// Brings the results of a run home from machines that share no folder.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "datasets/file.h"
#include "tools/deploy/call.h"
#include "tools/deploy/crowd.h"
#include "tools/deploy/deploy.h"
#include "tools/deploy/scripts.h"
#include "tools/launch/private_folder.h"

namespace duplex::tools {
namespace fs = std::filesystem;
namespace {

/// Takes what has come where it is not here, or is older here. A file of a run is one rank's, so
/// only a rank that has moved to another machine leaves two of a name.
void take_files(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    const fs::path own = to / entry.path().filename();
    if (fs::exists(own) && fs::last_write_time(own) >= entry.last_write_time()) continue;
    move_file(entry.path(), own);
  }
}

/// Where the archive begins in what a machine has sent: behind a line that the script has written,
/// since a login shell may say other things first, though not as much as a megabyte. None: the
/// machine has had no part in the run.
std::optional<std::uint64_t> archive_in(const std::string& path) {
  const datasets::ReadFile sent(path);
  std::string text(
      static_cast<std::size_t>(std::min<std::uint64_t>(sent.bytes(), std::uint64_t{1} << 20)),
      '\0');
  sent.read(0, text.data(), text.size());
  const std::string line = std::string(script_line) + "archive\n";
  const std::size_t at = text.find(line);
  if (at == std::string::npos) return std::nullopt;
  return at + line.size();
}

/// Throws Error with the reason alone. Files that could be read there have come all the same.
void bring_from(const std::vector<std::string>& command, const std::string& logdir,
                const std::atomic<bool>& stop) {
  const PrivateFolder folder("results");
  const std::string archive = folder.path() + "/results.tar.gz", files = folder.path() + "/files";
  const datasets::Descriptor to(
      ::open(archive.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (to.number() < 0) throw Error(archive + ": " + datasets::error_text(errno));
  const CallResult sent = call(command, {}, stop, {}, to.number());
  const std::optional<std::uint64_t> begin = archive_in(archive);
  if (!begin) {
    if (sent.code != 0) throw Error(sent.reason());
    return;
  }
  fs::create_directory(files);
  CallInput input;
  input.file = to.number();
  input.offset = *begin;
  const CallResult unpacked =
      call({"sh", "-c", "gzip -dc | tar -xof - -C \"$1\"", "sh", files}, input, stop);
  if (unpacked.code != 0) throw Error(sent.code != 0 ? sent.reason() : unpacked.reason());
  take_files(files, logdir);
  if (sent.code != 0) throw Error(sent.reason());
}

}  // namespace

void move_file(const fs::path& from, const fs::path& to) {
  std::error_code other;
  fs::rename(from, to, other);
  if (!other) return;
  const fs::file_time_type time = fs::last_write_time(from);
  fs::path whole = to;
  whole += ".new";
  try {
    fs::copy_file(from, whole, fs::copy_options::overwrite_existing);
    fs::last_write_time(whole, time);
    fs::rename(whole, to);
  } catch (const fs::filesystem_error&) {
    fs::remove(whole, other);
    throw;
  }
  fs::remove(from, other);
}

void bring_home(const Deployed& target, const Machines& machines, const EndedRun& run) {
  Machines others{machines.ssh, {}};
  for (const std::string& host : machines.hosts)
    if (!is_here(host)) others.hosts.push_back(host);
  if (others.hosts.empty()) return;
  const std::string name = Deployed::run_name(run.logdir);
  auto failed =
      for_all(others.hosts, [&](std::size_t machine, Board& board, const std::atomic<bool>& stop) {
        const std::string& host = others.hosts[machine];
        board.show(machine, "brings its results home");
        try {
          const auto results = results_script(target.folder, bundle_name(), run.nodefile, name);
          bring_from(script_command(others.ssh, host, results), run.logdir, stop);
          const auto end = end_script(target.folder, name, run.key, run.well);
          const CallResult result = call(script_command(others.ssh, host, end), {}, stop);
          if (result.code != 0) throw Error(result.reason());
        } catch (const std::exception& error) {
          throw Error(std::string("its results are still there, in ") +
                      target.run_path(run.logdir) + ": " + error.what());
        }
        board.show(machine, "");
      });
  const auto is_lost = [&](std::size_t machine) {
    return std::find(run.lost.begin(), run.lost.end(), others.hosts[machine]) != run.lost.end();
  };
  failed.erase(std::remove_if(failed.begin(), failed.end(), is_lost), failed.end());
  if (!failed.empty())
    throw Error("launch: the results of " + std::to_string(failed.size()) + " of " +
                std::to_string(others.hosts.size()) +
                " machines did not come home, for the reasons above");
}

}  // namespace duplex::tools
