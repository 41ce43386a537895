#include "layers/parts/part_schedule.h"

#include <algorithm>

#include "layers/parts/crossing.h"
#include "layers/parts/gather.h"

namespace duplex {

PartSchedule::PartSchedule(const Model& part, std::uint64_t micro_batches, std::uint64_t in_flight)
    : micro_batches_(micro_batches), in_flight_(in_flight), admitted_(micro_batches) {
  for (const Model::Entry& entry : part.nodes()) {
    std::vector<std::size_t>& forward = before_forward_.emplace_back();
    std::vector<std::size_t>& backward = before_backward_.emplace_back();
    const Layer* layer = entry.layer.get();
    returns_maps_.push_back(dynamic_cast<const ReceiveLayer*>(layer) != nullptr ||
                            dynamic_cast<const GatherLayer*>(layer) != nullptr);
    if (const auto* receive = dynamic_cast<const ReceiveLayer*>(entry.layer.get()))
      forward.push_back(receive->transfer());
    if (const auto* send = dynamic_cast<const SendLayer*>(entry.layer.get()))
      for (const SendLayer::Piece& piece : send->pieces())
        if (piece.gradient) backward.push_back(piece.transfer);
  }
}

std::optional<PartSchedule::Work> PartSchedule::next(const Arrived& arrived) {
  if (const auto work = next_backward(arrived)) return work;
  if (const auto work = next_forward(arrived)) return work;
  if (admitted_ == micro_batches_ || flights_.size() == in_flight_) return std::nullopt;
  flights_.push_back({admitted_, 0, layers()});
  return Work{Work::admit, admitted_++, 0};
}

std::optional<PartSchedule::Work> PartSchedule::next_backward(const Arrived& arrived) {
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    Flight& flight = flights_[i];
    if (flight.forward < layers() || (i > 0 && flights_[i - 1].backward >= flight.backward))
      continue;
    const std::vector<std::size_t>& needs = before_backward_[flight.backward - 1];
    if (!std::all_of(needs.begin(), needs.end(),
                     [&](std::size_t transfer) { return arrived(transfer, true, flight.number); }))
      continue;
    const Work work{Work::backward, flight.number, --flight.backward};
    if (flight.backward == 0) flights_.pop_front();  // It is the first: all before it have left.
    return work;
  }
  return std::nullopt;
}

std::optional<PartSchedule::Work> PartSchedule::next_forward(const Arrived& arrived) {
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    Flight& flight = flights_[i];
    if (flight.forward == layers() || (i > 0 && flights_[i - 1].forward <= flight.forward))
      continue;
    const std::vector<std::size_t>& needs = before_forward_[flight.forward];
    if (std::all_of(needs.begin(), needs.end(),
                    [&](std::size_t transfer) { return arrived(transfer, false, flight.number); }))
      return Work{Work::forward, flight.number, flight.forward++};
  }
  return std::nullopt;
}

}  // namespace duplex
