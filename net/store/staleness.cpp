#include "net/store/staleness.h"

#include <algorithm>

namespace duplex::net {
namespace {

void count(Staleness& row, std::uint64_t chunks, std::uint64_t sum, std::uint64_t most) {
  row.chunks += chunks;
  row.sum += sum;
  row.most = std::max(row.most, most);
}

}  // namespace

void StalenessTally::add(int worker, std::uint64_t step, std::uint64_t behind) {
  count(at(worker, step), 1, behind, behind);
}

void StalenessTally::add(const Staleness& row) {
  while (width_ < row.steps) widen();
  count(at(row.worker, row.step), row.chunks, row.sum, row.most);
}

std::vector<Staleness> StalenessTally::rows() const {
  std::vector<Staleness> all;
  for (const std::vector<Staleness>& rows : rows_) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

Staleness& StalenessTally::at(int worker, std::uint64_t step) {
  while (step / width_ >= most_rows) widen();
  std::vector<Staleness>& rows = rows_[static_cast<std::size_t>(worker)];
  while (rows.size() <= step / width_)
    rows.push_back({rows.size() * width_, worker, 0, 0, 0, width_});
  return rows[step / width_];
}

/// Makes one row of each two.
void StalenessTally::widen() {
  width_ *= 2;
  for (std::vector<Staleness>& rows : rows_) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Staleness row = rows[i];
      if (i % 2 == 0)
        rows[i / 2] = row;
      else
        count(rows[i / 2], row.chunks, row.sum, row.most);
      rows[i / 2].steps = width_;
    }
    rows.resize((rows.size() + 1) / 2);
  }
}

}  // namespace duplex::net
