#include "tools/check/machine/load.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "tools/check/machine/system_files.h"

namespace duplex::tools {

LoadCount::LoadCount(const std::string& root) {
  // "cpu user nice system idle iowait irq softirq steal ..."; time of guests is in user already.
  std::ifstream file(root + "/proc/stat");
  std::string cpu;
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft = 0;
  if (file >> cpu >> user >> nice >> system >> idle >> waiting >> irq >> soft >> stolen_)
    busy_ = user + nice + system + irq + soft;

  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/proc", none)) {
    const std::string number = entry.path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    // "NUMBER (NAME) STATE ...": a name may have spaces and brackets. utime is the 14th word.
    const std::string text = text_in(entry.path().string() + "/stat");
    const auto open = text.find('('), close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open) continue;
    std::istringstream words(text.substr(close + 1));
    std::string word;
    for (int i = 3; i <= 13; ++i) words >> word;
    std::int64_t in_user = 0, in_system = 0;
    if (words >> in_user >> in_system)
      programs_[std::atoi(number.c_str())] = {text.substr(open + 1, close - open - 1),
                                              in_user + in_system};
  }
}

void LoadCount::add_facts(MachineFacts& facts, const LoadCount& now, double seconds,
                          int own) const {
  if (seconds <= 0.0) return;
  const double tick = 1.0 / (static_cast<double>(::sysconf(_SC_CLK_TCK)) * seconds);
  const auto since = [&](int process, const Program& program) {
    const auto before = programs_.find(process);
    return program.ticks - (before == programs_.end() ? 0 : before->second.ticks);
  };
  std::int64_t mine = 0, most = 0;
  for (const auto& [process, program] : now.programs_) {
    const std::int64_t ticks = since(process, program);
    if (process == own) mine = ticks;
    if (process == own || ticks <= most) continue;
    most = ticks;
    facts.busiest = program.name;
  }
  facts.busy = static_cast<double>(std::max<std::int64_t>(now.busy_ - busy_ - mine, 0)) * tick;
  facts.stolen = static_cast<double>(std::max<std::int64_t>(now.stolen_ - stolen_, 0)) * tick;
  facts.busiest_cores = static_cast<double>(most) * tick;
}

}  // namespace duplex::tools
