// Runs the threads of a block as fibers: each runs until it waits for its block or returns.
#include "tests/stand_in/core/cudnn/kernels/kernel_call.h"

#include <ucontext.h>

#include <csetjmp>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace duplex::stand_in {
namespace {

constexpr std::size_t stack_bytes = std::size_t{64} << 10;

/// Only the first entry of a fiber uses ucontext, whose switches ask the kernel for the mask of
/// signals; the others use setjmp. When the body returns, the fiber waits for another.
struct Fiber {
  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  ucontext_t entry{}, nowhere{};
  std::jmp_buf place{};
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  bool entered = false, ended = false;
};

std::mutex one_kernel_at_a_time;
std::jmp_buf scheduler;
Fiber* running = nullptr;
const std::function<void()>* running_body = nullptr;

void run_fiber() {
  for (;;) {
    (*running_body)();
    running->ended = true;
    wait_for_block();
  }
}

Fiber::Fiber() {
  getcontext(&entry);
  entry.uc_stack.ss_sp = stack.get();
  entry.uc_stack.ss_size = stack_bytes;
  entry.uc_link = &nowhere;
  makecontext(&entry, run_fiber, 0);
}

void choose(std::uint32_t number) {
  thread_index = {number % block_extent.x, number / block_extent.x, 0};
}

/// Runs a fiber until it waits or ends.
void resume(Fiber& fiber, std::uint32_t number) {
  choose(number);
  running = &fiber;
  if (_setjmp(scheduler) != 0) return;
  if (std::exchange(fiber.entered, true)) std::longjmp(fiber.place, 1);
  setcontext(&fiber.entry);
}

/// Runs the threads of one block. Either all threads of a kernel wait for each other, or none does.
void run_block(std::deque<Fiber>& fibers, const std::function<void()>& body) {
  const std::uint32_t threads = block_extent.x * block_extent.y;
  while (fibers.size() < threads) fibers.emplace_back();
  for (Fiber& fiber : fibers) fiber.ended = false;
  resume(fibers[0], 0);
  if (fibers[0].ended) {
    for (std::uint32_t i = 1; i < threads; ++i) {
      choose(i);
      body();
    }
    return;
  }
  for (std::uint32_t i = 1; i < threads; ++i) resume(fibers[i], i);
  for (bool any = true; any;) {
    any = false;
    for (std::uint32_t i = 0; i < threads; ++i) {
      if (fibers[i].ended) continue;
      resume(fibers[i], i);
      any = true;
    }
  }
}

}  // namespace

void wait_for_block() {
  if (_setjmp(running->place) == 0) std::longjmp(scheduler, 1);
}

void run_blocks(dim3 grid, dim3 block, const std::function<void()>& body) {
  const std::lock_guard lock(one_kernel_at_a_time);
  static std::deque<Fiber> fibers;
  grid_extent = grid;
  block_extent = block;
  running_body = &body;
  for (std::uint32_t y = 0; y < grid.y; ++y) {
    for (std::uint32_t x = 0; x < grid.x; ++x) {
      block_index = {x, y, 0};
      run_block(fibers, body);
    }
  }
}

}  // namespace duplex::stand_in
