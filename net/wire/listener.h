// The listening socket, to which other ranks connect.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "net/wire/socket.h"

namespace duplex::net {

class Listener {
 public:
  Listener() = default;
  Listener(Listener&& other) noexcept { std::swap(fd_, other.fd_); }
  Listener& operator=(Listener&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Listener();

  /// Opens a listening socket; port 0 takes any free one. Accepted sockets inherit `congestion`.
  /// Throws Error naming the address if it is not this machine's or the port is taken.
  static Listener open(const Address& at, const std::string& congestion = "");

  explicit operator bool() const { return fd_ >= 0; }
  std::uint16_t port() const;
  std::string address() const;
  bool loopback() const;  ///< Whether only this machine can reach it.

  /// Returns the next connection, or an empty socket if none came in `wait`.
  Socket accept(std::chrono::milliseconds wait);

 private:
  int fd_ = -1;
};

}  // namespace duplex::net
