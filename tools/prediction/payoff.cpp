#include "tools/prediction/payoff.h"

#include "tools/text/table.h"

namespace duplex::tools {

std::string text_of(const Payoff& payoff) {
  if (payoff.speedup > 1.0)
    return "Paid: " + payoff.run + " is " + fixed(payoff.speedup, 2) + " times as fast as " +
           payoff.alone + ".\n";
  // The speedup is the product of these two, times the number of workers.
  const double part = payoff.step > 0.0 ? payoff.gradient / payoff.step : 1.0;
  const double slower = payoff.computing > 0.0 ? 1.0 / payoff.computing : 1.0;
  std::string why;
  if (part <= slower)
    why = ", because its workers compute during " + fixed(100.0 * part, 0) +
          "% of a step and exchange in the rest";
  else
    why = ", because its workers compute " + fixed(payoff.computing, 2) +
          " times as long as one machine would";
  return "Did not pay: " + payoff.run + " comes to " + fixed(payoff.speedup, 2) + " times " +
         payoff.alone + why + ".\n";
}

}  // namespace duplex::tools
