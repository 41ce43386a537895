#include "tools/check/machine/agent.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "tools/check/machine/host_facts.h"
#include "tools/check/machine/load.h"
#include "tools/check/machine/messages.h"
#include "tools/check/machine/network_facts.h"
#include "tools/check/machine/peers.h"
#include "tools/check/machine/program_facts.h"

namespace duplex::tools {
namespace {

constexpr std::chrono::milliseconds names_limit{5000};
/// Time for which the load is watched. /proc counts in hundredths of a second.
constexpr std::chrono::milliseconds load_time{500};

std::optional<std::string> next_line(std::FILE* in) {
  constexpr std::size_t longest = std::size_t{1} << 20U;
  std::string line;
  std::array<char, 4096> piece{};
  while (std::fgets(piece.data(), static_cast<int>(piece.size()), in) != nullptr) {
    line += piece.data();
    if (!line.empty() && line.back() == '\n') {
      line.pop_back();
      return line;
    }
    if (line.size() > longest) throw Error("check: the line that asks is too long");
  }
  return std::nullopt;
}

void answer(std::FILE* out, const CheckAnswer& said) {
  // A login shell may have written something without a line's end.
  const std::string line = "\n" + line_of(said) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), out) != line.size() || std::fflush(out) != 0)
    throw Error("check: nobody takes the answer");
}

/// Threads of this process do nothing meanwhile, so what is busy are others.
void add_load(MachineFacts& facts) {
  const LoadCount before;
  const std::int64_t begin = clock_ns();
  std::this_thread::sleep_for(load_time);
  before.add_facts(facts, LoadCount(), seconds(clock_ns() - begin), ::getpid());
}

MachineFacts facts_of(const CheckTask& task, const CheckPeers& peers) {
  MachineFacts facts;
  add_load(facts);
  add_host_facts(facts);
  add_program_facts(facts);
  std::error_code none;
  facts.disks = disk_facts({std::filesystem::current_path(none).string(), "/tmp"});
  add_network_facts(facts, task.machines, names_limit);
  facts.closed = peers.closed();
  return facts;
}

}  // namespace

void serve_check(std::FILE* in, std::FILE* out) {
  const std::optional<std::string> first = next_line(in);
  if (!first) return;
  const CheckTask task = parse_task(*first);
  CheckPeers peers(task);
  CheckAnswer facts;
  facts.what = "facts";
  facts.facts = facts_of(task, peers);
  answer(out, facts);
  while (const std::optional<std::string> line = next_line(in)) {
    const CheckRequest request = parse_request(*line);
    CheckAnswer said;
    if (request.what == "meet") {
      said.what = "met";
      said.calls = peers.call(request.peers);
    } else if (request.what == "rate" && request.peers.size() == 1) {
      said.what = "rate";
      said.rate = peers.rate(request.peers.front(), request.called);
    } else {
      throw Error("check: '" + request.what + "' is nothing that a machine can be asked");
    }
    answer(out, said);
  }
}

}  // namespace duplex::tools
