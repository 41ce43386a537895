#include "net/wire/listener.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "net/wire/socket_setup.h"

namespace duplex::net {

Listener::~Listener() {
  if (fd_ >= 0) ::close(fd_);
}

Listener Listener::open(const Address& at, const std::string& congestion) {
  const Addresses list = resolve(at, AI_PASSIVE);
  int error = 0;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
    Listener listener;
    listener.fd_ = ::socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                            info->ai_protocol);
    if (listener.fd_ < 0) {
      error = errno;
      continue;
    }
    set_option(listener.fd_, SOL_SOCKET, SO_REUSEADDR, 1);
    set_congestion(listener.fd_, congestion);
    if (::bind(listener.fd_, info->ai_addr, info->ai_addrlen) == 0 &&
        ::listen(listener.fd_, SOMAXCONN) == 0)
      return listener;
    error = errno;
  }
  std::string hint;
  if (error == EADDRINUSE) hint = ": another program, or another rank, has this port";
  if (error == EADDRNOTAVAIL) hint = ": this is no address of this machine";
  throw Error("cannot listen on " + at.str() + ": " + errno_text(error) + hint);
}

std::uint16_t Listener::port() const {
  const sockaddr_storage address = local_of(fd_);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string Listener::address() const {
  return text_of(local_of(fd_));
}

bool Listener::loopback() const {
  return is_loopback(local_of(fd_));
}

Socket Listener::accept(std::chrono::milliseconds wait) {
  pollfd wanted{fd_, POLLIN, 0};
  if (::poll(&wanted, 1, static_cast<int>(wait.count())) <= 0) return Socket();
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
  if (fd < 0) return Socket();
  prepare(fd);
  return Socket(fd, text_of(peer));
}

}  // namespace duplex::net
