// Staleness is counted by the step of the worker whose gradients they are, in bounded memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace duplex::net {

/// Says how many updates by other workers came between the weights that a gradient was computed
/// from and the gradient's own update, over all chunks of the gradients of a worker's steps.
struct Staleness {
  std::uint64_t step = 0;  ///< The first of the steps.
  int worker = 0;
  std::uint64_t chunks = 0, sum = 0, most = 0;
  std::uint64_t steps = 1;  ///< How many there are.
};

/// Its caller sees to it that one thread uses it at a time.
class StalenessTally {
 public:
  /// Rows of a worker. A training with more steps has a row for two of them, or four, and so on.
  static constexpr std::size_t most_rows = 4096;

  explicit StalenessTally(int workers) : workers_(static_cast<std::size_t>(workers)) {}

  /// One chunk of the step's gradient was `behind` updates by others behind.
  void add(int worker, std::uint64_t step, std::uint64_t behind);
  /// Counts what a row of an earlier part of the training has.
  void add(const Staleness& row);
  /// In order of worker, then step, without gaps from step 0 on.
  std::vector<Staleness> rows() const;

 private:
  struct Row {
    std::uint64_t chunks = 0, sum = 0, most = 0;
  };
  struct Worker {
    /// Either empty or most_rows long: all memory is taken, and touched, at the worker's first
    /// gradient, so that a training does not grow while it runs.
    std::vector<Row> rows;
    std::size_t used = 0;  ///< So many rows have begun.
  };

  Row& at(int worker, std::uint64_t step);
  void widen();

  std::vector<Worker> workers_;
  std::uint64_t width_ = 1;  ///< Steps of a row.
};

}  // namespace duplex::net
