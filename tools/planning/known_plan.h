// Plans that launch has had made before, which need not be measured again.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// So old may a plan be that is followed again: machines are put to other use.
constexpr double known_plan_hours = 12.0;

/// Everything that a plan depends on, as one text: this program, the flags, and what the nodefile
/// holds. `words` are plan's command line, without the names of the files that it writes.
std::string plan_question(const std::vector<std::string>& words, const std::string& nodefile);

/// Keeps the question beside the plan that answers it.
void keep_question(const std::string& plan, const std::string& question);

/// Returns the newest plan under a folder of run directories that answers the question, and is not
/// older than known_plan_hours; "" if there is none.
std::string find_plan(const std::string& runs, const std::string& question);

}  // namespace duplex::tools
