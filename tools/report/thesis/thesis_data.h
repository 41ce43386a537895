// Reads what tools/thesis has left in its folder, and holds the figures that the thesis itself has.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tools/prediction/equations.h"
#include "tools/report/thesis/sequence.h"

namespace duplex::tools::reports {

/// Table 6.1 (i5-4460, GTX 970, 1 Gbit/s), in seconds.
struct ThesisNetwork {
  const char* name;
  const char* title;
  Costs costs;
};
const std::vector<ThesisNetwork>& table_6_1();
/// Throws Error: no network of that name.
const ThesisNetwork& thesis_network(std::string_view name);

/// A chart of chapter 6.
struct ThesisFigure {
  const char* number;
  const char* network;
  net::Sync sync;
  int most;  ///< Workers.
};
const std::vector<ThesisFigure>& chapter_6();

/// Batches of the whole training in chapter 6.
constexpr double thesis_batches = 128;
/// Those of Caltech256.
constexpr int caltech_classes = 256;

struct LabResult {
  double speedup = 0.0;
  double busy = 0.0;       ///< Cores of the machine that were.
  bool disturbed = false;  ///< Others slowed the machine down, in every try.
};

/// All that is known about a point of a figure, for one server.
struct ThesisPoint {
  /// Speedups; `exact`: with overlap, and fewer bytes for the same result.
  std::optional<double> simulated, simulated_overlap, simulated_exact;
  std::optional<LabResult> lab, lab_overlap, lab_exact;
};

/// Costs measured here; missing ones have not been measured yet.
struct CostsHere {
  double bytes = 0.0;
  std::optional<double> comm, comm_both, comm_line, grad_cpu, grad_gpu;
  int grad_batch = 0;  ///< Images.
  /// The t_comm that estimates and simulations take: measured, or else what the line carries.
  double comm_taken() const { return comm.value_or(comm_line.value_or(0.0)); }
};

struct Thesis {
  std::string directory;
  std::string processor, kernel, congestion;
  std::set<std::string> commits;  ///< Commits of Duplex that the points were made with.
  int cores = 0;
  double mbit = 0.0;
  bool lab = false;
  std::map<std::string, CostsHere> costs;                                   ///< By network.
  std::map<std::tuple<std::string, std::string, int>, ThesisPoint> points;  ///< Figure, server, N.
  std::map<std::string, Iteration> diagrams;                                ///< By figure.

  const ThesisPoint* point(const std::string& figure, net::ServerMode server, int workers) const;
};

/// Returns whether a directory is what tools/thesis leaves.
bool is_thesis(const std::string& directory);
/// As far as it has come. Throws Error where a file is damaged or of another version.
Thesis read_thesis(const std::string& directory);

}  // namespace duplex::tools::reports
