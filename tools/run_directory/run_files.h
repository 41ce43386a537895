// What other commands have left in run directories.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace duplex::tools {

/// A run's JSON file of this version. Throws Error where it cannot be read, is damaged, or is of
/// another version.
nlohmann::json read_run_file(const std::string& path);

/// What a run has measured, in seconds.
struct MeasuredCosts {
  /// Of transport: bytes of gradients a second that an owner adds, or updates by.
  std::optional<double> owner_rate;
  std::optional<double> grad;  ///< Of local, and of dist but for split: a batch's gradient.
  std::optional<double> comm;  ///< Of dist and of transport: one transfer of all weights.
  std::string what;            ///< "local, LeNet, batch 64".
};

/// Throws Error: no run directory, or one whose run has measured neither.
MeasuredCosts measured_costs(const std::string& directory);

}  // namespace duplex::tools
