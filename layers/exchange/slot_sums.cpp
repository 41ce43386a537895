#include "layers/exchange/slot_sums.h"

#include <algorithm>

#include "core/processor/clones.h"

namespace duplex {
namespace {

/// Elements that one thread adds at a time.
constexpr std::size_t piece_elements = std::size_t{1} << 18;
/// Gradients of as many elements at most are added by the thread that brings the last of them: to
/// wake another one would take as long.
constexpr std::size_t small_elements = std::size_t{1} << 14;

/// to = (to + from) * factor.
DUPLEX_CLONES void add_floats(float* to, const float* from, std::size_t count, float factor) {
  DUPLEX_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) to[i] = (to[i] + from[i]) * factor;
}

}  // namespace

/// The exchange of one slot. Its thread alone calls it, and its push() may come from a thread that
/// copies from the device (PushQueue).
class SlotSums::Slot final : public Exchange {
 public:
  Slot(SlotSums& sums, std::size_t number) : sums_(sums), number_(number) {}

  void begin(std::uint64_t step) override { sums_.begin(number_, step); }
  void await(std::size_t parameter) override { sums_.await(number_, parameter, steps_); }
  void push(std::size_t parameter) override { sums_.push(parameter); }
  void end() override {
    if (number_ == 0) sums_.finish_step();
    ++steps_;
  }

 private:
  SlotSums& sums_;
  const std::size_t number_;
  std::uint64_t steps_ = 0;  ///< That this slot has ended.
};

SlotSums::SlotSums(Exchange& inner, const std::vector<const HostParameters*>& slots, int threads,
                   float factor)
    : inner_(inner), factor_(factor) {
  const std::vector<Span>& first = slots.front()->spans();
  for (std::size_t p = 0; p < first.size(); ++p) {
    Parameter& parameter = parameters_.emplace_back();
    parameter.count = first[p].count;
    for (const HostParameters* slot : slots)
      if (first[p].gradient != nullptr) parameter.gradients.push_back(slot->spans()[p].gradient);
  }
  for (std::size_t number = 0; number < slots.size(); ++number)
    slots_.push_back(std::make_unique<Slot>(*this, number));
  for (int i = 0; i < std::max(threads, 1); ++i) threads_.emplace_back([this] { work(); });
}

SlotSums::~SlotSums() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = stopped_ = true;
  }
  changed_.notify_all();
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool SlotSums::await_step(std::uint64_t step) {
  std::unique_lock<std::mutex> lock(mutex_);
  wait(lock, [&] { return begun_ > step || ended_; });
  return begun_ > step;
}

void SlotSums::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void SlotSums::fail(const std::exception_ptr& cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_) failure_ = cause;
  changed_.notify_all();
}

void SlotSums::check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

/// Returns when the condition holds; throws where a slot has failed.
template <class Condition>
void SlotSums::wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
  changed_.wait(lock, [&] { return failure_ || condition(); });
  if (failure_) std::rethrow_exception(failure_);
}

void SlotSums::begin(std::size_t slot, std::uint64_t step) {
  if (slot > 0) return;  // await_step() has waited.
  inner_.begin(step);
  const std::lock_guard<std::mutex> lock(mutex_);
  begun_ = step + 1;
  changed_.notify_all();
}

/// `steps`: that the slot has ended.
void SlotSums::await(std::size_t slot, std::size_t parameter, std::uint64_t steps) {
  if (slot == 0) inner_.await(parameter);
  std::unique_lock<std::mutex> lock(mutex_);
  std::uint64_t& here = parameters_[parameter].here;
  if (slot > 0) return wait(lock, [&] { return here > steps; });
  here = steps + 1;
  changed_.notify_all();
}

void SlotSums::push(std::size_t number) {
  Parameter& parameter = parameters_[number];
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (++parameter.arrived < slots_.size()) return;
    parameter.arrived = 0;
    if (!parameter.gradients.empty() && parameter.count > small_elements) {
      for (std::size_t from = 0; from < parameter.count; from += piece_elements) {
        pieces_.push_back({number, from, std::min(piece_elements, parameter.count - from)});
        ++parameter.pieces_left;
      }
      more_.notify_all();
      return;
    }
  }
  add({number, 0, parameter.count});
  pass_on(number);
}

void SlotSums::add(const Piece& piece) const {
  const std::vector<float*>& gradients = parameters_[piece.parameter].gradients;
  for (std::size_t slot = 1; slot < gradients.size(); ++slot)
    add_floats(gradients[0] + piece.from, gradients[slot] + piece.from, piece.count,
               slot + 1 < gradients.size() ? 1.0F : factor_);
}

void SlotSums::pass_on(std::size_t parameter) {
  {
    const std::lock_guard<std::mutex> one(push_mutex_);
    inner_.push(parameter);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ++passed_on_;
  changed_.notify_all();
}

void SlotSums::finish_step() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    wait(lock, [&] { return passed_on_ == parameters_.size(); });
    passed_on_ = 0;
  }
  inner_.end();
}

/// Adds pieces as they come, in the order in which their gradients were complete.
void SlotSums::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    more_.wait(lock, [&] { return stopped_ || !pieces_.empty(); });
    if (stopped_) return;
    const Piece piece = pieces_.front();
    pieces_.pop_front();
    lock.unlock();
    add(piece);
    lock.lock();
    if (--parameters_[piece.parameter].pieces_left > 0) continue;
    lock.unlock();
    try {
      pass_on(piece.parameter);
    } catch (...) {
      fail(std::current_exception());
    }
    lock.lock();
  }
}

}  // namespace duplex
