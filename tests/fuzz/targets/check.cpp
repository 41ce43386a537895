// Lines that `duplex check` and its parts on other machines send each other.
#include "tests/fuzz/target.h"
#include "tools/check/machine/messages.h"

namespace duplex::fuzz {

void check(const Bytes& input) {
  /// A list of facts of some hundred bytes each stands in few letters.
  constexpr std::size_t each = 400;
  const std::string text = text_of(input);
  reads(input, each, [&] {
    const tools::CheckAnswer answer = tools::parse_answer(text);
    require(reads(input, 2 * each, [&] { tools::parse_answer(tools::line_of(answer)); }),
            "an answer that was read cannot be read when it is written again");
  });
  reads(input, each, [&] {
    const tools::CheckTask task = tools::parse_task(text);
    require(task.index < static_cast<std::int64_t>(task.machines.size()), "a task for nobody");
  });
  reads(input, each, [&] { tools::parse_request(text); });
}

}  // namespace duplex::fuzz
