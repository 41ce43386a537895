#include "net/wire/zero_copy_pipe.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

namespace duplex::net {
namespace {

/// Two calls borrow as many bytes as a pipe holds and pass them on.
constexpr int wanted_bytes = 256 * 1024;
/// A pipe's usual size. A user who has very many pipes gets smaller ones, which would not pay.
constexpr int least_bytes = 64 * 1024;

/// Returns whether files run short: of those that this process may open, half are kept for
/// connections and the rest of the program.
bool is_scarce(int descriptor) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         static_cast<rlim_t>(descriptor) >= limit.rlim_cur / 2;
}

}  // namespace

ZeroCopyPipe::~ZeroCopyPipe() {
  close();
}

void ZeroCopyPipe::swap(ZeroCopyPipe& other) noexcept {
  std::swap(out_, other.out_);
  std::swap(in_, other.in_);
  std::swap(given_up_, other.given_up_);
}

void ZeroCopyPipe::close() {
  if (out_ >= 0) ::close(out_);
  if (in_ >= 0) ::close(in_);
  out_ = in_ = -1;
}

void ZeroCopyPipe::give_up() {
  close();
  given_up_ = true;
}

bool ZeroCopyPipe::open() {
  if (in_ >= 0) return true;
  int ends[2];
  if (given_up_ || ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  out_ = ends[0];
  in_ = ends[1];
  ::fcntl(in_, F_SETPIPE_SZ, wanted_bytes);  // If it may not grow, the usual size serves too.
  if (is_scarce(in_) || ::fcntl(in_, F_GETPIPE_SZ) < least_bytes) give_up();
  return in_ >= 0;
}

std::size_t ZeroCopyPipe::splice_in(const void* from, std::size_t size) {
  if (in_ < 0 && !open()) return 0;
  const iovec part{const_cast<void*>(from), size};
  for (;;) {
    const ssize_t borrowed = ::vmsplice(in_, &part, 1, SPLICE_F_NONBLOCK);
    if (borrowed > 0) return static_cast<std::size_t>(borrowed);
    if (borrowed < 0 && errno == EINTR) continue;
    give_up();
    return 0;
  }
}

ssize_t ZeroCopyPipe::splice_out(int socket, std::size_t size, bool more) {
  return ::splice(out_, nullptr, socket, nullptr, size, more ? SPLICE_F_MORE : 0U);
}

WithoutSigpipe::WithoutSigpipe() {
  sigset_t pending, only, before;
  sigpending(&pending);
  if (sigismember(&pending, SIGPIPE) == 1) return;  // It is blocked already.
  sigemptyset(&only);
  sigaddset(&only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &only, &before);
  blocked_ = sigismember(&before, SIGPIPE) == 0;
}

WithoutSigpipe::~WithoutSigpipe() {
  if (!blocked_) return;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGPIPE);
  const timespec now{};
  while (sigtimedwait(&only, nullptr, &now) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

}  // namespace duplex::net
