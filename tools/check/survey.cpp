#include "tools/check/survey.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "net/crypto/digest.h"
#include "net/link_survey.h"
#include "net/wire/frame.h"
#include "tools/check/remote.h"
#include "tools/check/verdict.h"
#include "tools/launch/hosts.h"

namespace duplex::tools {
namespace {

using std::chrono::milliseconds;

/// Time that a machine has to answer: ssh gives up connecting after `ssh_patience` seconds, and
/// looking names up takes 5 s at most.
constexpr milliseconds facts_limit{15000}, calls_limit{14000}, rate_limit{14000};
constexpr const char* ssh_patience = "ConnectTimeout=6";
/// Pairs that were slow are measured again for so long.
constexpr milliseconds second_look{5000};

class Surveyor {
 public:
  Surveyor(const std::vector<CheckedMachine>& machines, const SurveySettings& settings)
      : settings_(settings) {
    survey_.machines = machines;
    survey_.absent.resize(machines.size());
    survey_.facts.resize(machines.size());
    survey_.calls.resize(machines.size());
  }

  Survey run() {
    start();
    settings_.log("asks " + std::to_string(survey_.machines.size()) +
                  (survey_.machines.size() == 1 ? " machine" : " machines"));
    await_all(facts_limit, "facts");
    const std::vector<std::size_t> present = survey_.all_present();
    for (const std::size_t machine : present) ask_to_meet(machine, present);
    await_all(calls_limit, "met");
    measure_rates();
    for (const auto& remote : remotes_)
      if (remote) remote->close_input();  // They end together, not one after the other.
    return std::move(survey_);
  }

 private:
  struct Pair {
    std::size_t low, high;
  };

  void start();
  void ask_to_meet(std::size_t machine, const std::vector<std::size_t>& present);
  void await_all(milliseconds limit, const char* what);
  void step();
  void hear(std::size_t machine);
  void take(std::size_t machine, const CheckAnswer& answer);
  void lose(std::size_t machine, const std::string& reason, int code);
  void measure_rates();
  void measure(std::deque<Pair> pairs, Deadline last_start);
  bool begin(const Pair& pair);
  bool met(std::size_t from, std::size_t to) const;

  const SurveySettings& settings_;
  Survey survey_;
  std::vector<std::unique_ptr<Remote>> remotes_;  ///< By machine; null: it is absent.
  std::map<std::size_t, std::string> awaited_;    ///< The answer that each machine owes.
  std::map<std::size_t, RateFacts> measured_;     ///< By lower machine, until its peer is done.
};

void Surveyor::start() {
  const net::Digest secret = net::random_digest();
  CheckTask task;
  task.machines = survey_.machines;
  task.secret = net::hex(secret.data(), secret.size());
  task.seconds = settings_.seconds;
  // Names of other machines may take a while to be found.
  std::vector<std::future<bool>> here;
  for (const CheckedMachine& machine : survey_.machines)
    here.push_back(std::async(std::launch::async, [&machine] { return is_here(machine.host); }));
  for (std::size_t machine = 0; machine < survey_.machines.size(); ++machine) {
    const std::string& host = survey_.machines[machine].host;
    const std::vector<std::string> words{own_path(), "check", "--here", host};
    std::vector<std::string> command = words;
    if (!here[machine].get()) {
      command = ssh_command(settings_.ssh, host, "exec " + joined(words), same_place().folder);
      command.insert(command.begin() + 1, {"-o", ssh_patience});
    }
    remotes_.emplace_back();
    try {
      remotes_.back() = std::make_unique<Remote>(command);
    } catch (const Error& error) {
      lose(machine, error.what(), -1);
      continue;
    }
    task.index = static_cast<std::int64_t>(machine);
    remotes_.back()->send(line_of(task));
    awaited_[machine] = "facts";
  }
}

void Surveyor::ask_to_meet(std::size_t machine, const std::vector<std::size_t>& present) {
  CheckRequest request;
  request.what = "meet";
  for (const std::size_t peer : present)
    if (peer != machine) request.peers.push_back(static_cast<std::int64_t>(peer));
  if (request.peers.empty()) return;
  remotes_[machine]->send(line_of(request));
  awaited_[machine] = "met";
}

void Surveyor::lose(std::size_t machine, const std::string& reason, int code) {
  survey_.absent[machine] = Absence{reason, code};
  remotes_[machine].reset();
  awaited_.erase(machine);
}

/// Waits a moment for something to come, and takes it.
void Surveyor::step() {
  std::vector<pollfd> polled;
  for (const auto& remote : remotes_)
    if (remote)
      for (const int stream : {remote->output(), remote->errors()})
        polled.push_back({stream, POLLIN, 0});
  ::poll(polled.data(), polled.size(), 20);
  for (std::size_t machine = 0; machine < remotes_.size(); ++machine)
    if (remotes_[machine]) hear(machine);
}

void Surveyor::hear(std::size_t machine) {
  Remote& remote = *remotes_[machine];
  const bool ended = remote.ended();  // This is asked before the last of what it said is read.
  remote.read();
  try {
    while (const auto line = remote.next_answer()) take(machine, parse_answer(*line));
  } catch (const Error& error) {
    return lose(
        machine,
        "the duplex there does not answer as this one asks: " + net::printable(error.what()), 0);
  }
  if (!ended && (remote.output() >= 0 || remote.errors() >= 0)) return;
  const std::string words = remote.last_words();
  lose(machine, words, remote.code());
}

void Surveyor::take(std::size_t machine, const CheckAnswer& answer) {
  const auto owes = awaited_.find(machine);
  if (owes == awaited_.end() || owes->second != answer.what)
    throw Error("nobody has asked for " + answer.what);
  const auto known = [&](std::int64_t peer) {
    if (peer < 0 || peer >= static_cast<std::int64_t>(survey_.machines.size()))
      throw Error("there is no machine " + std::to_string(peer));
  };
  if (answer.what == "facts") {
    if (answer.facts.routes.size() != survey_.machines.size())
      throw Error("it knows another number of machines");
    survey_.facts[machine] = answer.facts;
  } else if (answer.what == "met") {
    for (const CallFacts& call : answer.calls) known(call.peer);
    survey_.calls[machine] = answer.calls;
  } else {
    known(answer.rate.peer);
    measured_[machine] = answer.rate;
    std::string& trouble = measured_[machine].trouble;
    if (trouble.empty() && !(answer.rate.out > 0.0 && answer.rate.in > 0.0))
      trouble = "nothing was measured";
  }
  awaited_.erase(owes);
}

void Surveyor::await_all(milliseconds limit, const char* what) {
  const Deadline until = Clock::now() + limit;
  while (!awaited_.empty() && Clock::now() < until) step();
  const auto late = awaited_;
  // They end together, not one after the other.
  for (const auto& [machine, owed] : late) remotes_[machine]->close_input();
  for (const auto& [machine, owed] : late)
    lose(machine,
         "it has not answered within " + std::to_string(limit.count() / 1000) + " s (" + what + ")",
         0);
}

/// Returns whether one has called the other at its first port, the connection to which stays.
bool Surveyor::met(std::size_t from, std::size_t to) const {
  const auto& calls = survey_.calls[from];
  const std::int64_t port = survey_.machines[to].ports.front();
  return std::any_of(calls.begin(), calls.end(), [&](const CallFacts& call) {
    return call.peer == static_cast<std::int64_t>(to) && call.port == port &&
           call.call == Call::met;
  });
}

/// Lets a pair measure its link, over a connection that ranks would have: the higher one calls.
bool Surveyor::begin(const Pair& pair) {
  const bool usual = met(pair.high, pair.low);
  if (!usual && !met(pair.low, pair.high)) return false;
  for (const auto& [machine, peer] :
       {std::pair(pair.low, pair.high), std::pair(pair.high, pair.low)}) {
    CheckRequest request;
    request.what = "rate";
    request.peers = {static_cast<std::int64_t>(peer)};
    request.called = usual == (machine == pair.high);
    remotes_[machine]->send(line_of(request));
    awaited_[machine] = "rate";
  }
  return true;
}

/// Measures pairs, as many at a time as have no machine in common, and begins none later than
/// `last_start`.
void Surveyor::measure(std::deque<Pair> pairs, Deadline last_start) {
  std::vector<std::pair<Pair, Deadline>> running;
  std::set<std::size_t> busy;
  while (!pairs.empty() || !running.empty()) {
    if (Clock::now() >= last_start) {
      survey_.unmeasured += pairs.size();
      pairs.clear();
    }
    for (auto pair = pairs.begin(); pair != pairs.end();) {
      const bool there = survey_.present(pair->low) && survey_.present(pair->high);
      if (there && (busy.count(pair->low) > 0 || busy.count(pair->high) > 0)) {
        ++pair;
        continue;
      }
      if (there && begin(*pair)) {
        busy.insert({pair->low, pair->high});
        running.emplace_back(*pair, Clock::now() + rate_limit);
      }
      pair = pairs.erase(pair);
    }
    step();
    for (auto each = running.begin(); each != running.end();) {
      const auto [pair, until] = *each;
      const bool owed = awaited_.count(pair.low) > 0 || awaited_.count(pair.high) > 0;
      if (owed && Clock::now() < until) {
        ++each;
        continue;
      }
      for (const std::size_t machine : {pair.low, pair.high})
        if (awaited_.count(machine) > 0) lose(machine, "it does not answer any more", 0);
      PairRates rates{pair.low, pair.high, 0.0, 0.0, 0.0, ""};
      const auto low = measured_.find(pair.low), high = measured_.find(pair.high);
      for (const auto& side : {low, high})
        if (side != measured_.end() && rates.trouble.empty()) rates.trouble = side->second.trouble;
      if (low != measured_.end() && rates.trouble.empty()) {
        rates.up = low->second.out;
        rates.down = low->second.in;
        rates.round_trip = low->second.round_trip;
      } else if (rates.trouble.empty()) {
        rates.trouble = "a machine was lost";
      }
      measured_.erase(pair.low);
      measured_.erase(pair.high);
      busy.erase(pair.low);
      busy.erase(pair.high);
      each = running.erase(each);
      // A pair that is measured again keeps the better of both.
      const auto same = [&](const PairRates& before) {
        return before.low == rates.low && before.high == rates.high;
      };
      const auto before = std::find_if(survey_.rates.begin(), survey_.rates.end(), same);
      if (before == survey_.rates.end()) {
        survey_.rates.push_back(rates);
      } else if (rates.trouble.empty()) {
        before->up = std::max(before->up, rates.up);
        before->down = std::max(before->down, rates.down);
      }
    }
  }
}

void Surveyor::measure_rates() {
  const int count = static_cast<int>(survey_.machines.size());
  std::deque<Pair> pairs;
  for (int round = 0; count > 1 && round < net::survey_rounds(count); ++round)
    for (const auto& [low, high] : net::survey_round(count, round))
      pairs.push_back({static_cast<std::size_t>(low), static_cast<std::size_t>(high)});
  // A transfer counts behind one of a third of its time, and there is one each way.
  const double expected =
      (settings_.seconds * 8 / 3 + 0.1) * (count > 1 ? net::survey_rounds(count) : 0);
  if (pairs.empty()) return;
  settings_.log("measures " + std::to_string(pairs.size()) +
                (pairs.size() == 1 ? " pair" : " pairs") + ", which takes about " +
                std::to_string(static_cast<int>(expected + 1.0)) + " s");
  // Slow links take longer, but not for ever.
  measure(std::move(pairs),
          Clock::now() + milliseconds(static_cast<std::int64_t>(1.5e3 * expected) + 2000));

  // Something may have come between: where that can be, the second look decides.
  const std::size_t unmeasured = survey_.unmeasured;
  const double usual = usual_rate(survey_);
  std::deque<Pair> slow;
  for (const PairRates& rates : survey_.rates)
    if (rates.trouble.empty() && std::min(rates.up, rates.down) < good_part * usual)
      slow.push_back({rates.low, rates.high});
  if (!slow.empty()) settings_.log("measures " + std::to_string(slow.size()) + " of them again");
  measure(std::move(slow), Clock::now() + second_look);
  survey_.unmeasured = unmeasured;
}

}  // namespace

std::vector<std::size_t> Survey::all_present() const {
  std::vector<std::size_t> all;
  for (std::size_t machine = 0; machine < machines.size(); ++machine)
    if (present(machine)) all.push_back(machine);
  return all;
}

const CallFacts* Survey::call(std::size_t from, std::size_t to) const {
  const CallFacts* found = nullptr;
  for (const CallFacts& call : calls[from])
    if (call.peer == static_cast<std::int64_t>(to) &&
        (found == nullptr || (found->call == Call::met && call.call != Call::met)))
      found = &call;
  return found;
}

std::vector<CheckedMachine> machines_of(const std::vector<Node>& nodes) {
  std::vector<CheckedMachine> machines;
  for (const Node& rank : ranks_of(nodes, false)) {
    const auto same = [&](const CheckedMachine& each) { return each.host == rank.address.host; };
    auto machine = std::find_if(machines.begin(), machines.end(), same);
    if (machine == machines.end())
      machine = machines.insert(machines.end(), {rank.address.host, {}});
    machine->ports.push_back(rank.address.port);
  }
  return machines;
}

Survey survey_machines(const std::vector<CheckedMachine>& machines,
                       const SurveySettings& settings) {
  return Surveyor(machines, settings).run();
}

double usual_rate(const Survey& survey) {
  std::vector<double> rates;
  for (const PairRates& pair : survey.rates)
    if (pair.trouble.empty()) rates.insert(rates.end(), {pair.up, pair.down});
  if (rates.empty()) return 0.0;
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() - 1 - (rates.size() - 1) / 4];
}

}  // namespace duplex::tools
