// duplex dist runs one rank of distributed training (Appendix C.3).
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>

#include "core/error.h"
#include "tools/checkpoint/signal_thread.h"
#include "tools/commands.h"
#include "tools/dist/rank.h"
#include "tools/dist/speeds.h"
#include "tools/flags/command_line.h"
#include "tools/flags/dist_flags.h"
#include "tools/launch/rank_record.h"

namespace duplex::tools {

int dist(int argc, const char* const* argv) {
  CommandLine app{
      "Trains a network as one rank of several; start one on every machine, by hand or with duplex "
      "launch, srun or mpirun.",
      "duplex dist"};
  DistFlags flags;
  flags.add_to(app);
  if (const auto done = parse(app, argc, argv)) return *done;
  const SignalThread signal_thread;
  StopSignals::catch_checkpoint_requests();
  // A launcher that is killed takes the other end of this rank's output with it. A line that nobody
  // reads must not end the training before its checkpoint.
  std::signal(SIGPIPE, SIG_IGN);
  const std::string source = flags.resolve();
  if (flags.training.spec.quiet) silence_standard_output();
  // launch knows by this line that the rank has begun.
  if (!flags.training.spec.quiet || flags.launched()) std::fprintf(stderr, "%s\n", source.c_str());
  DistSpec spec = flags.spec();
  std::optional<RankRecord> record;
  if (!flags.nodefile.empty()) record.emplace(flags.nodefiles(), spec.rank());
  if (record && !record->trouble().empty()) spec.mesh.warn(record->trouble());
  std::unique_ptr<StopSignals> signals;
  for (std::optional<KnownSpeed> speed;;) {
    std::optional<Rank> rank;
    try {
      if (spec.parallel.sharing != Sharing::given) {
        spec.parallel.shares = shares_by_speed(spec, speed);
        spec.mesh.log("each worker's part of a step is " +
                      (spec.parallel.shares.empty() ? std::string("even")
                                                    : spec.parallel.share_text().substr(2)));
      }
      rank.emplace(spec);
    } catch (const std::exception&) {
      net::Mesh::tell_cannot_start(spec.mesh, net::reason_of(std::current_exception()));
      if (StopSignals::stop() != 0) return 128 + StopSignals::stop();
      throw;
    }
    try {
      const int code = rank->run(std::move(signals));
      if (!rank->paused()) return code;
    } catch (const std::exception&) {
      if (rank->pauses())
        tell_shares_cannot_be_found(spec, net::reason_of(std::current_exception()));
      throw;
    }
    spec = rank->after_pause();
    spec.mesh.check = [] {
      if (StopSignals::stop() != 0)
        throw Error(std::string("stopped by ") + signal_name(StopSignals::stop()) +
                    " while the ranks met again; the same command with --resume goes on");
    };
    signals = rank->take_signals();
    speed = KnownSpeed{rank->image_seconds()};
  }
}

}  // namespace duplex::tools
