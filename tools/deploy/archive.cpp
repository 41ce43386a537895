#include "tools/deploy/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "core/files/output_file.h"
#include "datasets/file.h"
#include "tools/deploy/call.h"

namespace duplex::tools {
namespace {

constexpr std::size_t block = 512;

/// The header of a file's entry: fields at fixed places, of which numbers are octal digits.
struct Header {
  std::array<char, block> bytes{};

  void text(std::size_t at, std::size_t most, const std::string& value) {
    std::memcpy(bytes.data() + at, value.data(), std::min(most, value.size()));
  }
  void number(std::size_t at, std::size_t digits, std::uint64_t value) {
    char octal[24];
    std::snprintf(octal, sizeof octal, "%0*llo", static_cast<int>(digits),
                  static_cast<unsigned long long>(value));
    text(at, digits, octal);
  }
};

Header header_of(const BundleFile& file) {
  // A long path is cut at a slash: its beginning has a field of its own.
  std::string name = file.path, prefix;
  if (name.size() > 100) {
    const std::size_t slash = name.find('/', name.size() - 101);
    if (slash == std::string::npos || slash > 155 || slash == 0)
      throw Error("launch: " + file.path + " has too long a path for an archive");
    prefix = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  Header header;
  header.text(0, 100, name);
  header.number(100, 7, file.runs ? 0755 : 0644);
  header.number(108, 7, 0);  // The user and the group are root's, which tar is told to ignore.
  header.number(116, 7, 0);
  header.number(124, 11, file.bytes);
  header.number(136, 11, 0);  // The time.
  header.text(156, 1, "0");
  header.text(257, 8, std::string("ustar\00000", 8));
  header.text(345, 155, prefix);
  // The checksum counts its own field as blanks.
  header.text(148, 8, std::string(8, ' '));
  std::uint64_t sum = 0;
  for (const char byte : header.bytes) sum += static_cast<unsigned char>(byte);
  header.number(148, 6, sum);
  header.bytes[154] = '\0';
  return header;
}

void append(OutputFile& archive, const std::string& path, const BundleFile& file) {
  const Header header = header_of(file);
  archive.write(header.bytes.data(), header.bytes.size());
  const datasets::ReadFile from(path);
  std::vector<char> piece(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < file.bytes;) {
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.bytes - at));
    from.read(at, piece.data(), size);
    archive.write(piece.data(), size);
    at += size;
  }
  archive.write(std::string((block - file.bytes % block) % block, '\0'));
}

}  // namespace

std::string write_archive(const std::string& path, const std::string& folder,
                          const std::vector<BundleFile>& files) {
  OutputFile archive(path);
  for (const BundleFile& file : files) {
    try {
      append(archive, folder + "/" + file.path, file);
    } catch (const Error& error) {
      throw Error("launch: " + file.path + " cannot be packed: " + error.what());
    }
  }
  archive.write(std::string(2 * block, '\0'));
  archive.commit();
  const std::string packed = path + ".gz";
  const datasets::Descriptor from(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const datasets::Descriptor to(
      ::open(packed.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (from.number() < 0 || to.number() < 0)
    throw Error("launch: " + packed + ": " + datasets::error_text(errno));
  const std::atomic<bool> stop{false};
  CallInput input;
  input.file = from.number();
  // The least packing: with more, eight machines would wait longer for gzip than for the wire.
  const CallResult result = call({"gzip", "-1", "-c"}, input, stop, {}, to.number());
  if (result.code != 0) throw Error("launch: the bundle cannot be packed: " + result.reason());
  ::unlink(path.c_str());
  return packed;
}

}  // namespace duplex::tools
