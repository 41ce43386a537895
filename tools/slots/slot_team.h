// The slots of a rank beside its first: devices and networks of their own, which train in threads
// of their own, on weights that all slots share.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/exchange.h"
#include "layers/exchange/host_parameters.h"
#include "layers/network.h"
#include "tools/setup/training_spec.h"
#include "tools/slots/slot_places.h"

namespace duplex::tools {

class SlotTeam {
 public:
  struct Slot {
    int number = 0;
    SlotPlace place;
    std::unique_ptr<HostParameters> host;
    std::unique_ptr<Device> device;    ///< Null: a replay.
    std::unique_ptr<Network> network;  ///< Likewise.
  };
  /// Returns true when the step of that number has begun, and false when there is no more.
  using NextStep = std::function<bool(std::uint64_t step)>;
  /// Trains one of the slots, step by step, with the exchange that its gradients are pushed to.
  using TrainSlot = std::function<void(Slot& slot, Exchange& inner, const NextStep& next)>;

  /// Makes all slots but the first, each in a thread bound to its cores, for batches of so many
  /// samples. `places`: of all slots. `first`: the first one's, which must outlive this object, as
  /// its memory is the others', too. Throws Error.
  SlotTeam(const TrainingSpec& training, const Model& model, std::int64_t batch,
           const std::vector<SlotPlace>& places, HostParameters& first);

  /// Trains all slots, whose gradients are added up for `wire`, and multiplied by `factor`: the
  /// first by `lead`, in a thread bound to its cores, the others by `others`, each in one of its
  /// own. Returns when all have ended, which the first decides; throws what the first of them that
  /// failed has thrown.
  void train(Exchange& wire, float factor, const std::function<void(Exchange& inner)>& lead,
             const TrainSlot& others);

  /// "slot 1 computes on ...", a line for each.
  std::vector<std::string> lines() const;
  /// The cores that the first slot is bound to; empty: to none.
  const std::vector<int>& first_cores() const { return first_cores_; }

 private:
  HostParameters& first_;
  std::vector<int> first_cores_;
  std::vector<Slot> slots_;  ///< From number 1 on.
};

}  // namespace duplex::tools
