// Defines what `duplex check` and its part on each machine tell each other, over ssh's input and
// output: lines of JSON.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/check/machine/facts.h"

namespace duplex::tools {

/// A machine of the nodefile, with the ports of all ranks there.
struct CheckedMachine {
  std::string host;
  std::vector<std::int64_t> ports;
};

/// The first line to each machine.
struct CheckTask {
  std::int64_t index = 0;  ///< Which of the machines this is.
  std::vector<CheckedMachine> machines;
  std::string secret;    ///< All machines of one check have it, and nobody else.
  double seconds = 0.2;  ///< Each transfer that counts takes so long, about.
};

/// The later lines to a machine, by `what`: "meet" it calls the `peers`, by index; "rate" it
/// measures the link to the one peer.
struct CheckRequest {
  std::string what;
  std::vector<std::int64_t> peers;
  bool called = false;  ///< For "rate": over the connection that it has opened itself.
};

/// The result of a call.
enum class Call { met, refused, unreachable, unanswered, strange };
std::string name_of(Call call);
/// Throws Error.
Call parse_call(const std::string& name);

struct CallFacts {
  std::int64_t peer = 0, port = 0;
  Call call = Call::met;
  std::string trouble;         ///< The failure; empty: they met.
  std::int64_t offset_ns = 0;  ///< The peer's monotonic clock less this machine's ...
  std::int64_t error_ns = 0;   ///< ... which is wrong by so much at most.
};

struct RateFacts {
  std::int64_t peer = 0;
  double out = 0.0, in = 0.0;  ///< Bytes a second.
  double round_trip = 0.0;     ///< Seconds.
  std::string trouble;         ///< Why there are no figures; empty: there are.
};

/// A line from a machine, by `what`: "facts", "met" or "rate".
struct CheckAnswer {
  std::string what;
  MachineFacts facts;
  std::vector<CallFacts> calls;
  RateFacts rate;
};

/// Lines without their ends. A machine's begin with words that nothing else begins with, since its
/// shell may say other things.
std::string line_of(CheckTask task);
std::string line_of(CheckRequest request);
std::string line_of(CheckAnswer answer);
/// Throw Error for a line that is no such message.
CheckTask parse_task(const std::string& line);
CheckRequest parse_request(const std::string& line);
CheckAnswer parse_answer(const std::string& line);
bool is_answer(const std::string& line);  ///< Returns whether it begins as a machine's lines do.

}  // namespace duplex::tools
