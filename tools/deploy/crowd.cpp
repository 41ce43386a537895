#include "tools/deploy/crowd.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "tools/deploy/call.h"
#include "tools/launch/children.h"

namespace duplex::tools {

std::vector<std::size_t> for_all(const std::vector<std::string>& machines, const Turn& turn) {
  const PipesMayBreak pipes;
  note_interrupts();
  const int before = interrupts();
  Board board(machines);
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> next{0}, running{std::min(at_once, machines.size())};
  std::mutex mutex;  // Guards `failed`.
  std::vector<std::size_t> failed;
  const auto work = [&] {
    for (std::size_t machine; !stop && (machine = next++) < machines.size();) {
      std::string why;
      try {
        turn(machine, board, stop);
        continue;
      } catch (const std::exception& error) {
        why = error.what();
      }
      if (!stop) board.done(machine, why);
      const std::lock_guard<std::mutex> lock(mutex);
      failed.push_back(machine);
    }
    --running;
  };
  std::vector<std::thread> threads;
  for (std::size_t i = running; i > 0; --i) threads.emplace_back(work);
  while (running > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (interrupts() > before) stop = true;
    board.refresh();
  }
  for (std::thread& thread : threads) thread.join();
  if (stop) throw Error("launch: interrupted", static_cast<Exit>(128 + interruption()));
  std::sort(failed.begin(), failed.end());
  return failed;
}

}  // namespace duplex::tools
