// A way that becomes slow (tests/campaigns/network.sh): it passes on what comes, until a file is
// there; from then on a byte a second of each connection, in each direction.
//
// Usage: slow FILE PORT=HOST:PORT...
// Takes connections at each PORT for the address behind it, until it is ended.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// This is what it keeps itself of a direction, and about what the kernel keeps: a sender shall
/// soon notice.
constexpr std::size_t most_kept = 4096;
constexpr int kernel_keeps = 4096;
constexpr std::chrono::seconds between_bytes{1};
constexpr int look_every_ms = 5;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

void set_up(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kernel_keeps, sizeof kernel_keeps);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kernel_keeps, sizeof kernel_keeps);
}

sockaddr_in address_of(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    throw std::runtime_error(host + " is no address");
  return address;
}

/// Takes connections for an address.
struct Door {
  int listener;
  sockaddr_in target;
};

Door open_door(const std::string& word) {
  const std::size_t equals = word.find('='), colon = word.rfind(':');
  if (equals == std::string::npos || colon == std::string::npos || colon < equals)
    throw std::runtime_error(word + " is not PORT=HOST:PORT");
  Door door{
      ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
      address_of(word.substr(equals + 1, colon - equals - 1), std::stoi(word.substr(colon + 1)))};
  const int on = 1;
  ::setsockopt(door.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  set_up(door.listener);
  const sockaddr_in here = address_of("0.0.0.0", std::stoi(word.substr(0, equals)));
  if (::bind(door.listener, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
      ::listen(door.listener, 64) != 0)
    fail(word);
  return door;
}

/// One direction of a connection.
struct Direction {
  int from, to;
  std::string kept;
  bool ended = false;        ///< Nothing more comes.
  Clock::time_point next{};  ///< When the next byte may go, once it is slow.

  /// Returns false when all of it is over.
  bool carry(bool slow, Clock::time_point now) {
    while (!ended && kept.size() < most_kept) {
      std::array<char, most_kept> bytes;
      const ssize_t got = ::recv(from, bytes.data(), bytes.size() - kept.size(), MSG_DONTWAIT);
      if (got > 0)
        kept.append(bytes.data(), static_cast<std::size_t>(got));
      else if (got < 0 && (errno == EAGAIN || errno == EINTR))
        break;
      else
        ended = true;
    }
    while (!kept.empty() && (!slow || now >= next)) {
      const ssize_t put =
          ::send(to, kept.data(), slow ? 1 : kept.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (put < 0) {
        if (errno == EAGAIN || errno == EINTR || errno == EINPROGRESS || errno == ENOTCONN)
          return true;
        return false;
      }
      kept.erase(0, static_cast<std::size_t>(put));
      next = now + between_bytes;
    }
    if (!ended || !kept.empty()) return true;
    ::shutdown(to, SHUT_WR);
    return false;
  }
};

struct Connection {
  Direction there, back;
  bool there_goes = true, back_goes = true;

  bool carry(bool slow, Clock::time_point now) {
    there_goes = there_goes && there.carry(slow, now);
    back_goes = back_goes && back.carry(slow, now);
    return there_goes || back_goes;
  }
};

void accept_all(const Door& door, std::list<Connection>& connections) {
  for (;;) {
    const int near = ::accept4(door.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (near < 0) return;
    const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (far < 0) fail("socket");
    set_up(far);
    if (::connect(far, reinterpret_cast<const sockaddr*>(&door.target), sizeof door.target) != 0 &&
        errno != EINPROGRESS) {
      ::close(near);
      ::close(far);
      continue;
    }
    connections.push_back({{near, far, {}}, {far, near, {}}});
  }
}

int main_of(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    std::fputs("usage: slow FILE PORT=HOST:PORT...\n", stderr);
    return 2;
  }
  std::vector<Door> doors;
  for (std::size_t i = 1; i < words.size(); ++i) doors.push_back(open_door(words[i]));
  std::list<Connection> connections;
  for (;;) {
    const bool slow = ::access(words[0].c_str(), F_OK) == 0;
    for (const Door& door : doors) accept_all(door, connections);
    for (auto one = connections.begin(); one != connections.end();) {
      if (one->carry(slow, Clock::now())) {
        ++one;
        continue;
      }
      ::close(one->there.from);
      ::close(one->there.to);
      one = connections.erase(one);
    }
    std::vector<pollfd> all;
    for (const Door& door : doors) all.push_back({door.listener, POLLIN, 0});
    for (const Connection& one : connections)
      for (const Direction* direction : {&one.there, &one.back})
        if (!direction->ended && direction->kept.size() < most_kept)
          all.push_back({direction->from, POLLIN, 0});
    ::poll(all.data(), all.size(), look_every_ms);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return main_of({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "slow: %s\n", error.what());
    return 1;
  }
}
