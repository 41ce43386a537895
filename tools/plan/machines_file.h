// machines.json: what `duplex probe` has measured of the machines of a nodefile, for a plan.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/run_directory/part_profile.h"
#include "tools/run_directory/profile_file.h"

namespace duplex::tools {

struct MeasuredMachine {
  std::string address, host;       ///< As in the nodefile; its own name.
  ProfileFile profile;             ///< Seconds a layer, on random images.
  std::vector<PartProfile> parts;  ///< None: an older probe did not measure them, or slots compute.
  double grad = 0.0;               ///< Seconds of a batch's gradient: the layers together.
  double owner_rate = 0.0;         ///< Bytes a second; see transport.
  std::optional<double> seal_rate;  ///< Bytes a second of all processors, where frames are sealed.
  /// Operations a second at which one processor multiplies factors; none: an older probe did not
  /// measure it.
  std::optional<double> factor_rate;
  /// Processor seconds a byte to send, and to receive, and a frame beside its bytes; none: an older
  /// probe did not measure them, or there was no other machine.
  std::optional<double> send_processor, receive_processor, frame_processor;
  /// Seconds to bring all gradients into plain memory, and all weights back; none: a GPU computes,
  /// or an older probe did not measure them.
  std::optional<double> gradients_down, weights_up;
  /// Processor seconds to read an image; none: no data set was given, a GPU computes, or an older
  /// probe did not measure it.
  std::optional<double> sample_processor;
  std::optional<std::string> computes_on;  ///< Device::description().
  int cores = 0;                           ///< That may be used; 0: a GPU computes, or an older
                                           ///< probe did not tell.
  std::int64_t memory_bytes = 0;           ///< That a program may still have.
  int threads = 0;                         ///< That computed, on a slot.
  std::optional<int> slots;                ///< That computed at the same time; none: one.
  std::vector<double> out, in;             ///< Bytes a second to and from every machine; 0: itself.
  std::vector<double> round_trip;          ///< Seconds, likewise.

  /// Bytes a second of its link: the most that it sends to any, or gets from any, whichever is
  /// less.
  double rate() const;
  /// Returns whether both are one machine, which has several lines in the nodefile. Machines may
  /// have the same name.
  bool is_beside(const MeasuredMachine& other) const;
};

struct MachinesFile {
  std::string network, title, input;
  std::int64_t classes = 0, batch = 0;
  std::optional<std::string> network_file;  ///< Its text, where `network` is the path of a file.
  /// The values of probe's flags of these names; none: an older probe did not write them.
  std::optional<std::string> device, precision, layout;
  std::optional<std::string> link_rate;   ///< As --link-rate gave it; none: no limit.
  std::vector<MeasuredMachine> machines;  ///< By rank.
};

std::string text_of(MachinesFile file);
/// Throws Error, naming file and key, where it cannot be read, is damaged, or of another version.
MachinesFile read_machines(const std::string& path);
/// Returns the machines of these addresses, in this order. Throws Error(Exit::usage), beginning
/// with `path`, which the file was read from, where it has not one of them.
MachinesFile machines_at(const MachinesFile& file, const std::string& path,
                         const std::vector<std::string>& addresses);

/// One machine alone, as ranks tell each other.
std::string text_of(MeasuredMachine machine);
/// Throws Error, saying of which rank it is.
MeasuredMachine parse_machine(const std::string& text, int rank);

}  // namespace duplex::tools
