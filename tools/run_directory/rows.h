// Rows of the CSV files of a run directory; those of ledger-RANK.csv and
// traffic-RANK.csv are in net/ledger/ledger_row.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/files/csv.h"

namespace duplex::tools {

/// metrics.csv: a step of the first worker, in seconds.
struct StepMetrics {
  std::uint64_t step = 0, epoch = 0;
  std::optional<double> loss;  ///< The batch's; the reader gives none where it is not finite.
  double rate = 0.0;           ///< Learning rate.
  double total = 0.0;          ///< From the end of the step before to the end of this one.
  double data = 0.0;           ///< Waiting for the batch.
  double gradient = 0.0;       ///< Forward and backward, without the exchange's calls: t_grad.
  double await = 0.0;          ///< Waiting for weights.
  double push = 0.0;           ///< Handing gradients over; alone: updating the weights.
};

template <class Fields>
void describe(Fields& f, StepMetrics& r) {
  f.integer("step", r.step);
  f.integer("epoch", r.epoch);
  f.number("loss", r.loss);
  f.number("rate", r.rate);
  f.decimals("total_s", r.total, 9);
  f.decimals("data_s", r.data, 9);
  f.decimals("gradient_s", r.gradient, 9);
  f.decimals("await_s", r.await, 9);
  f.decimals("push_s", r.push, 9);
}

/// accuracy.csv: a test.
struct AccuracyRow {
  std::uint64_t step = 0;         ///< Steps that were trained before it.
  double epoch = 0.0;             ///< Likewise, in epochs.
  std::uint64_t samples = 0;      ///< Images that were tested.
  double top1 = 0.0, top5 = 0.0;  ///< Fractions of them.
  std::optional<double> loss;     ///< Mean. Read: none where it is not finite.
  std::int64_t test_ns = 0;       ///< Time that the test took; 0: an older run's.
};

template <class Fields>
void describe(Fields& f, AccuracyRow& r) {
  f.integer("step", r.step);
  f.number("epoch", r.epoch);
  f.integer("samples", r.samples);
  f.number("top1", r.top1);
  f.number("top5", r.top5);
  f.number("loss", r.loss);
  f.later("test_ns", r.test_ns);
}

/// staleness-RANK.csv: the gradients of a worker's step, as an owner applied them.
struct StalenessRow {
  int worker = 0;  ///< Its number among the workers.
  std::uint64_t step = 0;
  double mean = 0.0;  ///< Updates by others between the weights and their gradient, over chunks.
  std::uint64_t most = 0;  ///< Likewise, the most of any chunk.
};

template <class Fields>
void describe(Fields& f, StalenessRow& r) {
  f.integer("worker", r.worker);
  f.integer("step", r.step);
  f.decimals("mean", r.mean, 3);
  f.integer("most", r.most);
}

}  // namespace duplex::tools
