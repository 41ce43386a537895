#include "net/store/staleness.h"

#include <algorithm>

namespace duplex::net {

void StalenessTally::add(int worker, std::uint64_t step, std::uint64_t behind) {
  add({step, worker, 1, behind, behind, 1});
}

void StalenessTally::add(const Staleness& more) {
  while (width_ < more.steps) widen();
  Row& row = at(more.worker, more.step);
  row.chunks += more.chunks;
  row.sum += more.sum;
  row.most = std::max(row.most, more.most);
}

std::vector<Staleness> StalenessTally::rows() const {
  std::vector<Staleness> all;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker)
    for (std::size_t i = 0; i < workers_[worker].used; ++i) {
      const Row& row = workers_[worker].rows[i];
      all.push_back({i * width_, static_cast<int>(worker), row.chunks, row.sum, row.most, width_});
    }
  return all;
}

StalenessTally::Row& StalenessTally::at(int worker, std::uint64_t step) {
  while (step / width_ >= most_rows) widen();
  Worker& own = workers_[static_cast<std::size_t>(worker)];
  own.rows.resize(most_rows);
  const std::size_t i = step / width_;
  own.used = std::max(own.used, i + 1);
  return own.rows[i];
}

/// Makes one row of each two.
void StalenessTally::widen() {
  width_ *= 2;
  for (Worker& worker : workers_) {
    if (worker.used == 0) continue;
    for (std::size_t i = 0; i < most_rows / 2; ++i) {
      const Row &first = worker.rows[2 * i], &second = worker.rows[2 * i + 1];
      worker.rows[i] = {first.chunks + second.chunks, first.sum + second.sum,
                        std::max(first.most, second.most)};
    }
    std::fill(worker.rows.begin() + most_rows / 2, worker.rows.end(), Row{});
    worker.used = (worker.used + 1) / 2;
  }
}

}  // namespace duplex::net
