#include "net/connection/receive_window.h"

namespace duplex::net {

std::optional<std::size_t> ReceiveWindow::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!most_) return std::nullopt;
  return least_of_all();
}

std::size_t ReceiveWindow::own() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return own_;
}

bool ReceiveWindow::narrowed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return own_ < first_;
}

void ReceiveWindow::allow(std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!most_) return;
  most_ = std::min(*most_, std::max(least_window, bytes));
  own_ = std::min(own_, *most_);
}

bool ReceiveWindow::look(std::uint64_t behind_gaps, Clock::time_point now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!most_) return false;
  const std::size_t before = own_;
  if (behind_gaps > overtaken) {
    changed_ = now;
    if (now - halved_ < settling) return false;
    halved_ = now;
    own_ = std::max(least_window, least_of_all() / 2);
  } else if (own_ < *most_ && now - changed_ >= quiet) {
    changed_ = now;
    own_ = std::min(*most_, own_ + own_ / 4);
  }
  return own_ != before;
}

void ReceiveWindow::hear(int peer, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!most_) return;
  heard_[peer] = bytes;
  others_ = *most_;
  for (const auto& [rank, window] : heard_) others_ = std::min(others_, window);
}

}  // namespace duplex::net
