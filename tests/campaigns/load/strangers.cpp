// Strangers that connect to the ports of ranks (tests/campaigns/load.sh).
//
// Usage: strangers COUNT SECONDS PORT...
// Holds COUNT connections to these ports of loopback for so many seconds; 0: until it is ended. A
// quarter of them says nothing, a quarter sends noise, a quarter begins a hello and stops, and a
// quarter hangs up at once. One that is closed or refused comes again after a second. At the end it
// says how many attempts there were, and how many of them were taken.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds comes_again{1000};
volatile sig_atomic_t over = 0;

/// A header of net/PROTOCOL.md whose payload never comes.
const std::string half_hello = [] {
  return std::string("DXPL\x04\x00\x01\x00", 8) + std::string(16, '\0') +
         std::string("\x48\x00\x00\x00\x00\x00\x00\x00", 8);
}();

struct Stranger {
  int socket = -1;
  bool connected = false;
  Clock::time_point next;  ///< When it connects again.
};

struct Totals {
  std::uint64_t attempts = 0, taken = 0;
};

void close_it(Stranger& stranger) {
  ::close(stranger.socket);
  stranger.socket = -1;
  stranger.connected = false;
  stranger.next = Clock::now() + comes_again;
}

void connect_it(Stranger& stranger, int port, Totals& totals) {
  ++totals.attempts;
  stranger.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (stranger.socket < 0 ||
      (::connect(stranger.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
       errno != EINPROGRESS))
    close_it(stranger);
}

/// It is connected: acts as a stranger of its number does.
void act(Stranger& stranger, std::size_t number, Totals& totals) {
  ++totals.taken;
  stranger.connected = true;
  if (number % 4 == 1) {
    std::string noise(64, '\0');
    for (char& byte : noise) byte = static_cast<char>(std::rand());
    if (::send(stranger.socket, noise.data(), noise.size(), MSG_NOSIGNAL) < 0) close_it(stranger);
  } else if (number % 4 == 2) {
    if (::send(stranger.socket, half_hello.data(), half_hello.size(), MSG_NOSIGNAL) < 0)
      close_it(stranger);
  } else if (number % 4 == 3) {
    close_it(stranger);
  }
}

/// Looks at a socket that poll says has something.
void look(Stranger& stranger, std::size_t number, short events, Totals& totals) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(stranger.socket, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return close_it(stranger);
  if (!stranger.connected) {
    if ((events & POLLOUT) != 0) act(stranger, number, totals);
    return;
  }
  char bytes[4096];
  const ssize_t got = ::recv(stranger.socket, bytes, sizeof bytes, 0);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) close_it(stranger);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: strangers COUNT SECONDS PORT...\n", stderr);
    return 2;
  }
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, [](int) { over = 1; });
  std::vector<Stranger> strangers(static_cast<std::size_t>(std::atoi(argv[1])));
  const std::chrono::duration<double> limit(std::atof(argv[2]));
  const std::vector<int> ports = [&] {
    std::vector<int> all;
    for (int i = 3; i < argc; ++i) all.push_back(std::atoi(argv[i]));
    return all;
  }();
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 0; i < strangers.size(); ++i)  // They do not come all at one moment.
    strangers[i].next = begin + comes_again * i / strangers.size();
  Totals totals;
  std::vector<pollfd> polled(strangers.size());
  while (over == 0 && (limit.count() == 0.0 || Clock::now() - begin < limit)) {
    for (std::size_t i = 0; i < strangers.size(); ++i) {
      Stranger& stranger = strangers[i];
      if (stranger.socket < 0 && Clock::now() >= stranger.next)
        connect_it(stranger, ports[i % ports.size()], totals);
      polled[i] = {stranger.socket, static_cast<short>(stranger.connected ? POLLIN : POLLOUT), 0};
    }
    ::poll(polled.data(), polled.size(), 20);
    for (std::size_t i = 0; i < strangers.size(); ++i)
      if (strangers[i].socket >= 0 && polled[i].revents != 0)
        look(strangers[i], i, polled[i].revents, totals);
    ::usleep(5000);
  }
  std::printf("strangers: %llu attempts, %llu taken\n",
              static_cast<unsigned long long>(totals.attempts),
              static_cast<unsigned long long>(totals.taken));
  return 0;
}
