// Zero-copy sending: the kernel borrows memory and sends it from the pages where it lies, without
// the copy that send() makes.
#pragma once
#include <sys/types.h>

#include <cstddef>

namespace duplex::net {

/// A pipe through which pages go from memory (vmsplice) to a socket (splice). It is empty between
/// two bodies. It is movable, and for one thread at a time.
///
/// The network has references to the pages, no copy: borrowed memory must not change until the peer
/// has read it, which its answer tells, not the end of a call here. A peer on the same machine
/// reads those very pages.
class ZeroCopyPipe {
 public:
  ZeroCopyPipe() = default;
  ZeroCopyPipe(ZeroCopyPipe&& other) noexcept { swap(other); }
  ZeroCopyPipe& operator=(ZeroCopyPipe&& other) noexcept {
    ZeroCopyPipe(static_cast<ZeroCopyPipe&&>(other)).swap(*this);
    return *this;
  }
  ~ZeroCopyPipe();

  /// Returns false if the system has no pipe for this, or refused before: then the bytes must be
  /// copied.
  bool open();
  /// Puts the first of `size` bytes into the empty pipe, which it opens, and returns how many. 0:
  /// there is no pipe, or the kernel cannot borrow such memory.
  std::size_t splice_in(const void* from, std::size_t size);
  /// Moves up to `size` of those bytes on to a socket; `more`: others follow at once. Returns -1
  /// with errno if it cannot.
  ssize_t splice_out(int socket, std::size_t size, bool more);
  /// Closes the pipe for good, with what is in it.
  void give_up();

 private:
  void swap(ZeroCopyPipe& other) noexcept;
  void close();

  int out_ = -1, in_ = -1;
  bool given_up_ = false;
};

/// While it lives, a write to a socket that its peer has closed fails (EPIPE) and raises no SIGPIPE
/// in this thread: splice has no MSG_NOSIGNAL.
class WithoutSigpipe {
 public:
  WithoutSigpipe();
  ~WithoutSigpipe();
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  bool blocked_ = false;  ///< This object blocked it.
};

}  // namespace duplex::net
