#include "tools/checkpoint/stop_signals.h"

#include <signal.h>

#include <atomic>
#include <csignal>
#include <initializer_list>

namespace duplex::tools {
namespace {

// A thread of its own gets the signals (SignalThread), and others look for them.
std::atomic<int> stop_signal{0}, checkpoint_request{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler of signals may not wait");

void on_stop(int signal) {
  stop_signal = signal;
  for (const int each : {SIGINT, SIGTERM}) std::signal(each, SIG_DFL);
}

void on_request(int) {
  checkpoint_request = 1;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  handle(SIGINT, on_stop);
  handle(SIGTERM, on_stop);
  catch_checkpoint_requests();
}

StopSignals::~StopSignals() {
  for (const int each : {SIGINT, SIGTERM}) std::signal(each, SIG_DFL);
}

void StopSignals::catch_checkpoint_requests() {
  handle(SIGUSR1, on_request);
}

int StopSignals::stop() {
  return stop_signal;
}

bool StopSignals::take_checkpoint_request() {
  return checkpoint_request.exchange(0) != 0;
}

const char* signal_name(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGUSR1";
}

}  // namespace duplex::tools
