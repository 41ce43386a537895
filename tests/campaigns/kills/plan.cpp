#include "tests/campaigns/kills/plan.h"

#include <signal.h>

#include <algorithm>
#include <fstream>

namespace duplex::campaigns {
namespace {

/// The owner's update follows the last gradient by less than this.
constexpr int longest_update_us = 300;

/// The events of each phase but those of computing, which are told apart by their numbers.
const std::vector<std::pair<std::string, Words>>& events_of_phases() {
  static const std::vector<std::pair<std::string, Words>> all{
      {"rendezvous", {"connect", "accept", "send:hello", "receive:hello"}},
      {"handshake",
       {"send:challenge", "send:response", "send:accept", "send:ping", "send:pong", "send:offer",
        "send:resume", "receive:challenge", "receive:response", "receive:accept", "receive:offer",
        "receive:resume"}},
      {"forward", {}},
      {"backward", {}},
      {"push", {"send:gradient", "body:gradient"}},
      {"update", {"receive:gradient"}},
      {"publish", {"send:weights", "body:weights"}},
      {"write", {"open", "write", "pwrite", "fsync"}},
      {"rename", {"rename"}},
      {"test", {}},
      {"goodbye", {"send:report", "send:goodbye", "receive:goodbye", "send:done", "receive:done"}}};
  return all;
}

/// A number from 1 of the forward primitives that belong to tests, or to none of them.
std::optional<std::uint64_t> forward_of(const Calls& calls, bool test, Dice& dice) {
  const auto count = calls.counts.find("forward");
  if (count == calls.counts.end()) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = 1; number <= count->second; ++number) {
    const bool tests = std::any_of(calls.tests.begin(), calls.tests.end(), [&](const auto& one) {
      return number >= one.first && number <= one.second;
    });
    if (tests == test) numbers.push_back(number);
  }
  if (numbers.empty()) return std::nullopt;
  return numbers[dice.below(numbers.size())];
}

std::vector<std::pair<std::string, int>> roles_of(const Mode& mode) {
  if (mode.central) return {{"server", 0}, {"first worker", 1}, {"worker", 2}};
  return {{"first worker", 0}, {"owner", 2}};
}

}  // namespace

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all{
      {"join, central", {"--sync", "join", "--server", "central"}, true, false},
      {"join, distributed", {"--sync", "join"}, false, false},
      {"split, distributed", {"--sync", "split"}, false, false},
      {"average, central", {"--average", "2", "--server", "central"}, true, false},
      {"average, distributed", {"--average", "2"}, false, false},
      {"none, central", {"--sync", "none", "--server", "central"}, true, true},
      {"none, distributed", {"--sync", "none"}, false, true}};
  return all;
}

std::string name_of(Start start) {
  return start == Start::by_hand ? "by hand" : "launched";
}

const std::vector<std::string>& phases() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const auto& [name, events] : events_of_phases()) names.push_back(name);
    return names;
  }();
  return all;
}

std::string signal_name(int signal) {
  return signal == SIGKILL ? "KILL" : signal == SIGSTOP ? "STOP" : "TERM";
}

Calls read_calls(const std::string& path) {
  Calls calls;
  std::ifstream file(path);
  std::string event;
  std::uint64_t count = 0, last = 0;
  while (file >> event >> count) {
    if (event == "test" && file >> last)
      calls.tests.emplace_back(count, last);
    else
      calls.counts[event] = count;
  }
  return calls;
}

/// Spreads the numbers as splitmix64 does.
Dice::Dice(std::uint64_t seed, std::uint64_t run)
    : state_(seed * 0x9E3779B97F4A7C15U + run * 0xD1B54A32D192ED03U) {}

std::uint64_t Dice::below(std::uint64_t limit) {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  return (mixed ^ (mixed >> 31)) % limit;
}

std::optional<Place> place_of(const std::string& phase, const Calls& calls, Dice& dice) {
  Place place;
  place.after = dice.below(2) == 1;
  if (phase == "forward" || phase == "test") {
    const auto number = forward_of(calls, phase == "test", dice);
    if (!number) return std::nullopt;
    place.event = "forward";
    place.number = *number;
    return place;
  }
  Words there;
  for (const auto& [name, events] : events_of_phases())
    if (name == phase)
      for (const std::string& event : events)
        if (calls.counts.count(event) != 0) there.push_back(event);
  if (phase == "backward" && calls.counts.count("backward") != 0) there.emplace_back("backward");
  if (there.empty()) return std::nullopt;
  place.event = there[dice.below(there.size())];
  place.number = 1 + dice.below(calls.counts.at(place.event));
  // How often a rank tries to connect differs from run to run.
  if (phase == "rendezvous") place.number = 1;
  if (phase == "update") place.delay_us = static_cast<int>(dice.below(longest_update_us));
  return place;
}

std::vector<Cell> cells_of(const Mode& mode, const std::array<Calls, ranks>& calls) {
  std::vector<Cell> cells;
  const auto add = [&](const std::string& role, int rank, Start start) {
    for (const std::string& phase : phases()) {
      Dice any(0, 0);
      if (!place_of(phase, calls[static_cast<std::size_t>(rank)], any)) continue;
      for (const int signal : {SIGKILL, SIGSTOP, SIGTERM})
        cells.push_back({&mode, role, rank, phase, signal, start});
    }
  };
  for (const auto& [role, rank] : roles_of(mode))
    for (const Start start : {Start::by_hand, Start::launched}) add(role, rank, start);
  add("launcher", mode.central ? 1 : 0, Start::launched);
  return cells;
}

}  // namespace duplex::campaigns
