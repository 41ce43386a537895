// A stream of frames that begins with the bytes of an input and then ends.
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/clock.h"
#include "net/wire/frame_stream.h"
#include "tests/fuzz/target.h"

namespace duplex::fuzz {

/// A stream whose input waits in a socket pair's buffer, which takes far more than an input has,
/// and whose output nobody reads.
class ByteStream {
 public:
  explicit ByteStream(const Bytes& bytes) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      require(false, std::strerror(errno));
    far_ = ends[1];
    stream = net::FrameStream(net::Socket(ends[0], "somebody"));
    require(::send(far_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()),
            "an input does not fit into a socket's buffer");
    ::shutdown(far_, SHUT_WR);
  }
  ~ByteStream() { ::close(far_); }
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Nothing here waits: what is missing is over.
  static Deadline deadline() { return Clock::now() + std::chrono::seconds(20); }

  net::FrameStream stream;

 private:
  int far_ = -1;
};

}  // namespace duplex::fuzz
