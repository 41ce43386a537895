#include "layers/exchange/averaging_exchange.h"

namespace duplex {

void AveragingExchange::begin(std::uint64_t step) {
  step_ = step;
  if (first_of_round()) staging_.begin(step / every_);
  local_.begin(step);
}

void AveragingExchange::await(std::size_t parameter) {
  if (first_of_round()) staging_.await(parameter);
}

/// The wire takes the mean of what it finds in the gradients' place, which here are weights.
void AveragingExchange::push(std::size_t parameter) {
  local_.push(parameter);
  if (last_of_round()) staging_.push(parameter);
}

void AveragingExchange::end() {
  local_.end();
  if (last_of_round()) staging_.end();
}

}  // namespace duplex
