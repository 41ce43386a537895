#include "tools/checkpoint/signal_thread.h"

#include <signal.h>
#include <initializer_list>

namespace duplex::tools {

SignalThread::SignalThread() {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&ours, signal);
  pthread_sigmask(SIG_BLOCK, &ours, &before_);
  thread_ = std::thread([this, ours] {
    pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return over_; });
  });
}

SignalThread::~SignalThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace duplex::tools
