#include "tools/deploy/bundle.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/error.h"
#include "datasets/file.h"
#include "net/crypto/digest.h"
#include "tools/deploy/call.h"
#include "tools/launch/children.h"
#include "tools/launch/hosts.h"
#include "tools/text/version.h"

namespace duplex::tools {
namespace fs = std::filesystem;
namespace {

constexpr const char* manifest = "MANIFEST";

/// "duplex-VERSION-linux-x86_64.tar.gz", as `make bundle` names it.
std::string archive_name() {
  utsname system{};
  ::uname(&system);
  return bundle_name() + "-linux-" + system.machine + ".tar.gz";
}

/// The archive that `make bundle` has left: beside the program, or above its folder, where the
/// Makefile lies. The newer one, if there are two; "" if there is none.
std::string archive_beside() {
  const fs::path folder = fs::path(own_path()).parent_path();
  std::string found;
  fs::file_time_type newest{};
  for (const fs::path& where : {folder, folder.parent_path()}) {
    std::error_code none;
    const fs::path path = where / archive_name();
    const fs::file_time_type time = fs::last_write_time(path, none);
    if (none || (!found.empty() && time < newest)) continue;
    found = path.string();
    newest = time;
  }
  return found;
}

/// Runs a command that needs no input, and returns what it wrote.
CallResult output_of(const std::vector<std::string>& command) {
  const PipesMayBreak pipes;
  const std::atomic<bool> stop{false};
  return call(command, {}, stop);
}

/// Returns whether a path leads to nothing outside of its folder.
bool stays_inside(const fs::path& path) {
  return !path.empty() && path.is_relative() && path.lexically_normal() == path &&
         *path.begin() != "..";
}

}  // namespace

std::string bundle_name() {
  return std::string("duplex-") + program_version;
}

std::pair<std::string, std::uint64_t> digest_of(const std::string& path) {
  std::uint64_t bytes = 0;
  net::Sha256 sum;
  try {
    const datasets::ReadFile file(path);
    bytes = file.bytes();
    std::vector<char> piece(std::size_t{1} << 20);
    for (std::uint64_t at = 0; at < bytes && interrupts() == 0;) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), bytes - at));
      file.read(at, piece.data(), size);
      sum.add({piece.data(), size});
      at += size;
    }
  } catch (const Error& error) {
    throw Error("launch: " + path + " cannot be read: " + error.what());
  }
  if (interrupts() > 0) throw Error("launch: interrupted", static_cast<Exit>(128 + interruption()));
  const net::Digest digest = sum.digest();
  return {net::hex(digest.data(), digest.size()), bytes};
}

Bundle Bundle::open(const std::string& asked) {
  Bundle bundle;
  const fs::path own = fs::path(own_path()).parent_path();
  std::string source = asked;
  if (source.empty() && fs::exists(own / manifest)) source = own.string();
  if (source.empty()) source = archive_beside();
  if (source.empty())
    throw Error("launch: --deploy needs a bundle, and there is no " + archive_name() +
                    " beside this program: `make bundle` makes it, --bundle FILE names another",
                Exit::usage);
  if (fs::is_directory(source)) {
    bundle.folder_ = source;
  } else {
    bundle.unpack(source);
  }
  bundle.read_manifest(source);
  std::error_code unreadable;
  if (!fs::equivalent(own, bundle.folder_, unreadable)) bundle.require_same_version(source);
  return bundle;
}

void Bundle::unpack(const std::string& archive) {
  if (::access(archive.c_str(), R_OK) != 0)
    throw Error("launch: bundle " + archive + ": " + datasets::error_text(errno), Exit::usage);
  unpacked_ = std::make_unique<PrivateFolder>("the bundle");
  const CallResult result =
      output_of({"sh", "-c", "gzip -t < \"$1\" && gzip -dc < \"$1\" | tar -xof - -C \"$2\"", "sh",
                 archive, unpacked_->path()});
  if (result.code != 0)
    throw Error("launch: bundle " + archive + " cannot be unpacked: " + result.reason());
  folder_ = unpacked_->path() + "/" + bundle_name();
  if (fs::is_directory(folder_)) return;
  std::string others;
  for (const auto& entry : fs::directory_iterator(unpacked_->path()))
    others += (others.empty() ? "" : ", ") + entry.path().filename().string();
  throw Error("launch: bundle " + archive + " holds " + (others.empty() ? "nothing" : others) +
              ", and this program's is " + bundle_name() + ": give the bundle of this version");
}

void Bundle::read_manifest(const std::string& source) {
  const std::string what = "launch: bundle " + source;
  std::ifstream file(folder_ + "/" + manifest);
  if (!file) throw Error(what + " has no " + manifest + ": unpack or make it again");
  const auto own = digest_of(folder_ + "/" + manifest);
  files_.push_back({manifest, own.first, own.second, false});
  for (std::string line; std::getline(file, line);) {
    const bool good = line.size() > 66 && line.compare(64, 2, "  ") == 0 &&
                      stays_inside(line.substr(66)) &&
                      line.find_first_not_of("0123456789abcdef") == 64;
    if (!good) throw Error(what + ": " + manifest + " has the line '" + line + "', which is none");
    const std::string path = line.substr(66), full = folder_ + "/" + path;
    std::error_code missing;
    if (!fs::is_regular_file(full, missing))
      throw Error(what + " lacks " + path + ": unpack or make it again");
    const auto [digest, bytes] = digest_of(full);
    if (digest != line.substr(0, 64))
      throw Error(what + ": " + path + " is not what " + manifest +
                  " says: unpack or make it again");
    files_.push_back({path, digest, bytes, ::access(full.c_str(), X_OK) == 0});
  }
  const auto program = std::find_if(files_.begin(), files_.end(),
                                    [](const BundleFile& each) { return each.path == "duplex"; });
  if (program == files_.end()) throw Error(what + " has no program: make it again");
}

void Bundle::require_same_version(const std::string& source) const {
  const std::string own = std::string("duplex   ") + program_version + ", commit " + built_commit;
  const CallResult result = output_of({folder_ + "/duplex", "--version"});
  if (result.code != 0)
    throw Error("launch: bundle " + source + " does not run here: " + result.reason());
  const std::string other = result.out.substr(0, result.out.find('\n'));
  if (other == own) return;
  const std::size_t words = own.find_first_not_of(' ', own.find(' '));
  throw Error("launch: bundle " + source + " is of " +
              (other.size() > words ? other.substr(words) : "another program") +
              ", and this program of " + own.substr(words) +
              ": `make bundle` makes that of this program; or run the bundle's own");
}

}  // namespace duplex::tools
