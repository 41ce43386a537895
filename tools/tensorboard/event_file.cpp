#include "tools/tensorboard/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files/crc32c.h"
#include "core/files/write_all.h"
#include "tools/text/host_name.h"

namespace duplex::tools {
namespace {

namespace fs = std::filesystem;

// ---- Protocol Buffers: a field is its number and kind in one byte (numbers up to 15), then its
// value.

enum Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_key(std::string& to, unsigned field, Wire kind) {
  to += static_cast<char>(field << 3 | static_cast<unsigned>(kind));
}

/// Seven bits a byte, the lowest first; all bytes but the last have the highest bit.
void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7f) | 0x80);
  to += static_cast<char>(value);
}

template <class Unsigned>
void put_little_endian(std::string& to, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

void put_double(std::string& to, unsigned field, double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  put_key(to, field, fixed64);
  put_little_endian(to, bits);
}

void put_float(std::string& to, unsigned field, float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  put_key(to, field, fixed32);
  put_little_endian(to, bits);
}

void put_number(std::string& to, unsigned field, std::uint64_t value) {
  put_key(to, field, varint);
  put_varint(to, value);
}

/// Text, or a message.
void put_bytes(std::string& to, unsigned field, std::string_view value) {
  put_key(to, field, bytes);
  put_varint(to, value.size());
  to += value;
}

std::string event(double wall, std::uint64_t step) {
  std::string message;
  put_double(message, 1, wall);
  if (step > 0) put_number(message, 2, step);
  return message;
}

std::uint32_t masked_checksum(std::string_view data) {
  const std::uint32_t crc = crc32c(0, data.data(), data.size());
  return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

// ---- Files.

const std::string prefix = "events.out.tfevents.";

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

[[noreturn]] void refuse(const std::string& directory, const std::string& why, Exit code) {
  throw Error("--tensorboard " + directory + ": " + why, code);
}

constexpr long last_second = 9999999999;  // Names have ten digits for it.

/// The latest second that the name of an event file in the directory has; 0: there are none.
long latest(const std::string& directory) {
  long second = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (!is_event_file(name)) continue;
    const bool ours = name.rfind(prefix, 0) == 0;
    const long own = ours ? std::strtol(name.c_str() + prefix.size(), nullptr, 10) : 0L;
    second = std::max({second, 1L, own < last_second ? own : 0L});
  }
  if (error) refuse(directory, "cannot be read: " + error.message(), Exit::failed);
  return second;
}

}  // namespace

std::string tf_record(std::string_view message) {
  std::string length, record;
  put_little_endian(length, std::uint64_t{message.size()});
  record = length;
  put_little_endian(record, masked_checksum(length));
  record += message;
  put_little_endian(record, masked_checksum(message));
  return record;
}

std::string version_event(double wall) {
  std::string message = event(wall, 0);
  put_bytes(message, 3, "brain.Event:2");  // file_version
  return message;
}

std::string start_event(double wall, std::uint64_t step) {
  std::string session, message = event(wall, step);
  put_number(session, 1, 1);  // SessionLog: status START
  put_bytes(message, 7, session);
  return message;
}

std::string scalars_event(double wall, std::uint64_t step, const Scalars& scalars) {
  std::string summary, message = event(wall, step);
  for (const auto& [tag, value] : scalars) {
    std::string one;
    put_bytes(one, 1, tag);
    put_float(one, 2, static_cast<float>(value));  // simple_value
    put_bytes(summary, 1, one);
  }
  put_bytes(message, 5, summary);
  return message;
}

bool is_event_file(const std::string& name) {
  return name.find("tfevents") != std::string::npos;
}

EventFile::EventFile(std::string directory, bool resumes, Troubles& troubles)
    : directory_(directory), troubles_(troubles), goes_on_([&] {
        std::error_code error;
        fs::create_directories(directory, error);
        if (!error && !fs::is_directory(directory, error))
          error = std::make_error_code(std::errc::not_a_directory);
        if (error) refuse(directory, "cannot be made: " + error.message(), Exit::failed);
        return latest(directory) > 0;
      }()) {
  if (!resumes) require_new();
  // TensorBoard reads the files of a directory by their names.
  long second = std::max(static_cast<long>(std::time(nullptr)), latest(directory) + 1);
  do {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%010ld", second++);
    path_ =
        directory + "/" + prefix + digits + "." + host_name() + "." + std::to_string(::getpid());
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0)
    refuse(directory, "cannot be written: " + std::generic_category().message(errno), Exit::failed);
}

void EventFile::require_new() const {
  if (goes_on_)
    refuse(directory_,
           "holds events of another run, which TensorBoard would draw as one with this: give "
           "another folder, or remove it",
           Exit::usage);
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (bytes_ == 0) ::unlink(path_.c_str());
}

void EventFile::begin(std::uint64_t steps) {
  append(tf_record(version_event(now())));
  if (goes_on_) append(tf_record(start_event(now(), steps + 1)));
}

void EventFile::write(std::uint64_t steps, const Scalars& scalars) {
  if (!scalars.empty()) append(tf_record(scalars_event(now(), steps, scalars)));
}

void EventFile::append(const std::string& record) {
  if (descriptor_ < 0) return;
  if (write_all(descriptor_, record.data(), record.size()) < record.size()) {
    troubles_.add(path_ + " cannot be written: " + std::generic_category().message(errno));
    // The part of this record that is there goes, so that the file can be read to its end.
    [[maybe_unused]] const int cut = ::ftruncate(descriptor_, static_cast<off_t>(bytes_));
    ::close(descriptor_);
    descriptor_ = -1;
    return;
  }
  bytes_ += record.size();
}

}  // namespace duplex::tools
