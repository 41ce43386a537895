// The kernel borrows memory: it copies nothing, and refuses what it cannot borrow.
#include "net/wire/zero_copy_pipe.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "core/mapped_memory.h"

namespace duplex::net {
namespace {

constexpr std::size_t size = 48 * 1024;

/// A TCP connection over loopback.
struct Connected {
  Connected() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* at = reinterpret_cast<sockaddr*>(&address);
    from = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener, at, length) == 0 && ::listen(listener, 1) == 0 &&
        ::getsockname(listener, at, &length) == 0 && ::connect(from, at, length) == 0)
      to = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ::close(listener);
  }
  ~Connected() {
    ::close(from);
    ::close(to);
  }
  int from = -1, to = -1;
};

TEST(ZeroCopyPipe, PassesPagesNotCopies) {
  const Connected pair;
  ZeroCopyPipe pipe;
  ASSERT_TRUE(pipe.open());
  const Buffer memory = map_memory(size);
  std::memset(memory.data(), 'a', size);
  ASSERT_EQ(pipe.splice_in(memory.data(), size), size);
  ASSERT_EQ(pipe.splice_out(pair.from, size, false), static_cast<ssize_t>(size));
  std::memset(memory.data(), 'b', size);  // Elsewhere nobody may change it before the peer has read
                                          // it.
  std::vector<char> got(size);
  ASSERT_EQ(::recv(pair.to, got.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
  EXPECT_EQ(got, std::vector<char>(size, 'b'));
}

TEST(ZeroCopyPipe, MemoryThatIsNotThereIsRefusedForGood) {
  ZeroCopyPipe pipe;
  ASSERT_TRUE(pipe.open());
  const void* gone = nullptr;
  {
    const Buffer memory = map_memory(size);
    gone = memory.data();
  }
  EXPECT_EQ(pipe.splice_in(gone, size), 0U);
  EXPECT_FALSE(pipe.open());
}

TEST(ZeroCopyPipe, LeavesScarceFilesToOthers) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  for (const rlim_t few : {3U, 8U}) {
    const rlimit limit{few, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    ZeroCopyPipe pipe;
    EXPECT_FALSE(pipe.open()) << few;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  }
  EXPECT_TRUE(ZeroCopyPipe().open());
}

TEST(ZeroCopyPipe, AClosedPeerIsAnErrorNotASignal) {
  Connected pair;
  ZeroCopyPipe pipe;
  ASSERT_TRUE(pipe.open());
  const Buffer memory = map_memory(size);
  ::shutdown(pair.from, SHUT_WR);
  {
    const WithoutSigpipe quiet;
    ASSERT_EQ(pipe.splice_in(memory.data(), size), size);
    EXPECT_EQ(pipe.splice_out(pair.from, size, false), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  sigset_t set;
  sigpending(&set);
  EXPECT_EQ(sigismember(&set, SIGPIPE), 0);
  pthread_sigmask(SIG_BLOCK, nullptr, &set);
  EXPECT_EQ(sigismember(&set, SIGPIPE), 0);
}

}  // namespace
}  // namespace duplex::net
