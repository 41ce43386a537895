// The files of a run directory: their names, and what was written into them
// (docs/run-directory.md).
#pragma once
#include <optional>
#include <string>

#include "tools/run_directory/evaluation_file.h"
#include "tools/run_directory/profile_file.h"
#include "tools/run_directory/run_config.h"
#include "tools/run_directory/run_summary.h"
#include "tools/run_directory/transport_summary.h"
#include "tools/run_directory/weights_note.h"

namespace duplex::tools {

constexpr const char* config_file = "config.json";
constexpr const char* summary_file = "summary.json";
constexpr const char* profile_file = "profile.json";
constexpr const char* metrics_file = "metrics.csv";
constexpr const char* accuracy_file = "accuracy.csv";
constexpr const char* evaluation_file = "evaluation.json";
constexpr const char* trace_file = "trace.json";
constexpr const char* checkpoint_file = "checkpoint.safetensors";
constexpr const char* ema_file = "ema.safetensors";
constexpr const char* checkpoints_folder = "checkpoints";
/// A training leaves these files, written by its first worker. One that begins anew in the same run
/// directory sets them aside.
constexpr const char* files_of_the_first_worker[] = {metrics_file,    accuracy_file,   profile_file,
                                                     evaluation_file, checkpoint_file, ema_file};

std::string rank_file(int rank);
std::string ledger_file(int rank);
std::string traffic_file(int rank);
std::string staleness_file(int rank);
std::string transport_file(const std::string& role);

/// Returns whether a run writes files of this name.
bool is_run_file(const std::string& name);

/// The file's text.
std::string text_of(RunConfig config);
std::string text_of(RunSummary summary);
std::string text_of(TransportSummary summary);
std::string text_of(ProfileFile profile);
std::string text_of(EvaluationFile evaluation);
/// The note in one line.
std::string text_of(WeightsNote note);

/// "the outputs for 20 of 20 test images are not finite, and count as wrong".
std::string not_finite_text(const AccuracySummary& accuracy);

/// Read a file of this version, whatever version of duplex wrote it. Throw Error, naming file and
/// key, where it cannot be read, is damaged, or is of another version.
RunConfig read_config(const std::string& path);
RunSummary read_summary(const std::string& path);
TransportSummary read_transport(const std::string& path);
ProfileFile read_profile_file(const std::string& path);
EvaluationFile read_evaluation(const std::string& path);

/// Does the same with the note of the weights in the file `path`.
WeightsNote parse_weights_note(const std::string& text, const std::string& path);

/// A run of local, dist or simulate, as report and compare see it.
struct Run {
  std::string directory, name;
  RunConfig config;
  std::optional<RunSummary> summary;  ///< None: the run was interrupted, or still goes on.
};
/// Throws Error where there is no config.json, or as read_config does.
Run read_run(const std::string& directory);

/// The last part of a path, for people.
std::string name_of_directory(const std::string& directory);
/// The path of what transport has left in a directory; empty: nothing.
std::string transport_in(const std::string& directory);

/// The times that a run has measured, in seconds.
struct MeasuredCosts {
  /// Bytes of gradients a second that an owner adds, or updates by; transport measures it.
  std::optional<double> owner_rate;
  /// Bytes a second that its processors seal or open; transport measures it where frames are
  /// sealed.
  std::optional<double> seal_rate;
  /// Processor seconds a byte to send, and to receive, and of a frame; transport measures them.
  std::optional<double> send_processor, receive_processor, frame_processor;
  /// Seconds to bring all gradients into plain memory, and all weights back; local measures them.
  std::optional<double> gradients_down, weights_up;
  std::optional<double> sample_processor;  ///< Processor seconds to read an image, likewise.
  std::optional<int> threads, cores;       ///< That computed, of the cores of its machine.
  std::optional<double> grad;  ///< A batch's gradient; local measures it, and dist but for split.
  std::optional<std::int64_t> batch;  ///< Images of that batch.
  std::optional<double> comm;       ///< One transfer of all weights; dist and transport measure it.
  std::optional<double> link_rate;  ///< Bytes a second of --link-rate.
  std::string what;                 ///< For people: "local, LeNet, batch 64".
};

/// Throws Error: no run directory, or one whose run has measured neither.
MeasuredCosts measured_costs(const std::string& directory);

}  // namespace duplex::tools
