// The functions of the C library and of oneDNN that the library for LD_PRELOAD stands before.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "net/wire/frame.h"
#include "tests/campaigns/preload/watch.h"

namespace duplex::campaigns {
namespace {

constexpr int most_files = 4096;

/// Follows the frames that a connection receives.
struct Receiving {
  std::array<std::uint8_t, net::header_bytes> header{};
  std::size_t have = 0;    ///< Bytes of the header.
  std::uint64_t left = 0;  ///< Bytes of the payload that are still to come.
  int kind = 0;
};
std::array<Receiving, most_files> receiving;
std::array<std::atomic<bool>, most_files> of_checkpoint;
thread_local int sending = 0;  ///< The kind of frame whose header this thread sent last.

/// Notes what has no beginning that this library sees.
void happened(int event) {
  Watch::here().after(event, Watch::here().before(event));
}

bool known(int file) {
  return file >= 0 && file < most_files;
}

template <class Integer>
Integer read_at(const std::uint8_t* from) {
  Integer value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// The kind of frame that begins there; 0: none does.
int kind_at(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  if (size != net::header_bytes || read_at<std::uint32_t>(from) != net::frame_magic) return 0;
  const int kind = read_at<std::uint16_t>(from + 6);
  return kind < kinds ? kind : 0;
}

void feed(int file, const std::uint8_t* bytes, std::size_t size) {
  Receiving& at = receiving[static_cast<std::size_t>(file)];
  while (size > 0) {
    std::size_t taken = 0;
    if (at.left == 0) {
      taken = std::min(size, at.header.size() - at.have);
      std::memcpy(at.header.data() + at.have, bytes, taken);
      at.have += taken;
      if (at.have == at.header.size()) {
        at.have = 0;
        at.kind = kind_at(at.header.data(), at.header.size());
        if (at.kind == 0) return;
        at.left = read_at<std::uint64_t>(at.header.data() + 24);
        if (at.left == 0) happened(event_of(receive_whole, at.kind));
      }
    } else {
      taken = static_cast<std::size_t>(std::min<std::uint64_t>(size, at.left));
      at.left -= taken;
      if (at.left == 0) happened(event_of(receive_whole, at.kind));
    }
    bytes += taken;
    size -= taken;
  }
}

bool in_checkpoints(const char* path) {
  return std::strstr(path, "/checkpoints/") != nullptr;
}

/// The function of that name which this library stands before.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Calls it between the two notes of an event; an event of 0 is not noted.
template <class Call>
auto noted(int event, const Call& call) {
  const std::uint64_t number = event == none ? 0 : Watch::here().before(event);
  const auto result = call();
  const int error = errno;
  if (event != none && result >= 0) Watch::here().after(event, number);
  errno = error;
  return result;
}

}  // namespace
}  // namespace duplex::campaigns

using namespace duplex::campaigns;

extern "C" {

int connect(int file, const sockaddr* address, socklen_t size) {
  static auto* const real = next<int(int, const sockaddr*, socklen_t)>("connect");
  if (known(file)) receiving[static_cast<std::size_t>(file)] = {};
  const std::uint64_t number = Watch::here().before(connecting);
  const int result = real(file, address, size);
  const int error = errno;
  Watch::here().after(connecting, number);
  errno = error;
  return result;
}

int accept4(int file, sockaddr* address, socklen_t* size, int flags) {
  static auto* const real = next<int(int, sockaddr*, socklen_t*, int)>("accept4");
  const int result = real(file, address, size, flags);
  const int error = errno;
  if (known(result)) {
    receiving[static_cast<std::size_t>(result)] = {};
    happened(accepting);
  }
  errno = error;
  return result;
}

ssize_t recv(int file, void* to, std::size_t size, int flags) {
  static auto* const real = next<ssize_t(int, void*, std::size_t, int)>("recv");
  const ssize_t got = real(file, to, size, flags);
  const int error = errno;
  if (got > 0 && (flags & MSG_PEEK) == 0 && known(file))
    feed(file, static_cast<const std::uint8_t*>(to), static_cast<std::size_t>(got));
  errno = error;
  return got;
}

ssize_t sendmsg(int file, const msghdr* message, int flags) {
  static auto* const real = next<ssize_t(int, const msghdr*, int)>("sendmsg");
  const int kind = message->msg_iovlen > 0
                       ? kind_at(message->msg_iov[0].iov_base, message->msg_iov[0].iov_len)
                       : 0;
  if (kind != 0) sending = kind;
  return noted(kind == 0 ? int{none} : event_of(send_head, kind),
               [&] { return real(file, message, flags); });
}

ssize_t splice(int from, off64_t* from_at, int to, off64_t* to_at, std::size_t size,
               unsigned flags) {
  static auto* const real =
      next<ssize_t(int, off64_t*, int, off64_t*, std::size_t, unsigned)>("splice");
  return noted(sending == 0 ? int{none} : event_of(send_body, sending),
               [&] { return real(from, from_at, to, to_at, size, flags); });
}

int open(const char* path, int flags, ...) {
  static auto* const real = next<int(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  const bool ours = (flags & O_CREAT) != 0 && in_checkpoints(path);
  const int file = noted(ours ? int{opening} : int{none}, [&] { return real(path, flags, mode); });
  if (known(file)) of_checkpoint[static_cast<std::size_t>(file)] = ours;
  return file;
}

ssize_t write(int file, const void* from, std::size_t size) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  const bool ours = known(file) && of_checkpoint[static_cast<std::size_t>(file)];
  return noted(ours ? int{writing} : int{none}, [&] { return real(file, from, size); });
}

ssize_t pwrite(int file, const void* from, std::size_t size, off_t offset) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
  const bool ours = known(file) && of_checkpoint[static_cast<std::size_t>(file)];
  return noted(ours ? int{placing} : int{none}, [&] { return real(file, from, size, offset); });
}

int fsync(int file) {
  static auto* const real = next<int(int)>("fsync");
  const bool ours = known(file) && of_checkpoint[static_cast<std::size_t>(file)];
  return noted(ours ? int{syncing} : int{none}, [&] { return real(file); });
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("rename");
  return noted(in_checkpoints(to) ? int{renaming} : int{none}, [&] { return real(from, to); });
}

// oneDNN's C functions, declared as in its versions 2 and 3.
int dnnl_primitive_get_primitive_desc(const void* primitive, const void** description);
int dnnl_primitive_desc_query(const void* description, int what, int index, void* result);

int dnnl_primitive_execute(const void* primitive, void* stream, int count, const void* arguments) {
  static auto* const real =
      next<int(const void*, void*, int, const void*)>("dnnl_primitive_execute");
  static auto* const describe =
      next<decltype(dnnl_primitive_get_primitive_desc)>("dnnl_primitive_get_primitive_desc");
  static auto* const query = next<decltype(dnnl_primitive_desc_query)>("dnnl_primitive_desc_query");
  constexpr int query_prop_kind = 11, first_of_backward = 128;
  const void* description = nullptr;
  int direction = 0, event = none;
  if (describe(primitive, &description) == 0 &&
      query(description, query_prop_kind, 0, &direction) == 0 && direction != 0)
    event = direction < first_of_backward ? forward : backward;
  const std::uint64_t number = event == none ? 0 : Watch::here().computes(event);
  const int result = real(primitive, stream, count, arguments);
  if (event != none) Watch::here().after(event, number);
  return result;
}

}  // extern "C"
