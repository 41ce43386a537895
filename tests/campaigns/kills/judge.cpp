#include "tests/campaigns/kills/judge.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

#include "core/error.h"
#include "core/files/safetensors.h"
#include "tests/tools/program.h"

namespace duplex::campaigns {
namespace {

namespace fs = std::filesystem;
using tools::testing::plus;
using tools::testing::read_text;
using tools::testing::write_text;

constexpr double timeout_s = 2.0;               ///< --timeout of all runs.
constexpr double promised_s = timeout_s + 5.0;  ///< Within this survivors end or go on.
constexpr double rest_of_run_s = 5.0;           ///< A run that goes on may take so much longer.
constexpr double awake_s = timeout_s + 1.0;     ///< A stopped rank goes on after this.
/// A rank that launch should have ended by itself goes on after this.
constexpr double late_awake_s = promised_s + 3.0;
/// A run counts only where this program got a processor at least as often as this.
constexpr double longest_gap_s = 0.3;
constexpr int peer_lost = 3, timed_out = 4;

Weights read_weights(const std::string& path) {
  const SafetensorsFile file(path);
  file.verify();
  Weights weights;
  for (const SafetensorsEntry& entry : file.entries()) {
    auto& values = weights[entry.name];
    values.resize(static_cast<std::size_t>(entry.shape.elements()));
    file.read(entry, values.data());
  }
  return weights;
}

bool finite(const Weights& weights) {
  return std::all_of(weights.begin(), weights.end(), [](const auto& one) {
    return std::all_of(one.second.begin(), one.second.end(),
                       [](float value) { return std::isfinite(value); });
  });
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Returns whether an error of the program in that log names the rank.
bool names(const std::string& log, int rank) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (has(line, "duplex: ") && has(line, "rank " + std::to_string(rank) + " ")) return true;
  return false;
}

bool lost_a_peer(const Member& member) {
  return member.exit == peer_lost || member.exit == timed_out;
}

/// The phases in which a rank is in no run yet.
bool meeting(const Cell& cell) {
  return cell.phase == "rendezvous" || cell.phase == "handshake";
}

double seconds_since(const Mark& mark, std::int64_t time) {
  return static_cast<double>(time - mark.time) * 1e-9;
}

std::string who(const Member& member) {
  if (member.orphan) return "orphan";
  return member.rank < 0 ? "launcher" : "rank " + std::to_string(member.rank);
}

void note(std::string& text, const std::string& more) {
  text += (text.empty() ? "" : "; ") + more;
}

std::string path_of_log(const std::string& folder, int rank, const std::string& prefix) {
  return folder + "/" + prefix + (rank < 0 ? "launch" : "rank-" + std::to_string(rank)) + ".log";
}

}  // namespace

Judge::Judge(std::string folder, std::string library, Ports ports)
    : folder_(std::move(folder)), library_(std::move(library)), ports_(ports) {
  fs::create_directories(folder_ + "/data");
  tools::testing::write_squares(folder_ + "/data", 96, 20);
}

Words Judge::dist_words(const Mode& mode, const std::string& job) const {
  Words words{"--net",     "lenet", "--datadir",    folder_ + "/data",
              "--batch",   "6",     "--threads",    "1",
              "--batches", "16",    "--test-every", "1",
              "--job",     job,     "--logdir",     run_folder() + "/out",
              "--timeout", "2",     "--accuracy",   "--optimizer",
              "adam"};
  if (!mode.async) words = plus(words, {"--checkpoint-every", "4"});
  return plus(words, mode.flags);
}

/// Starts all ranks, by hand or by launch, on ports of their own.
void Judge::begin(Team& team, const Cell& cell, const Words& settings, bool resume,
                  const std::string& prefix) {
  const std::string nodefile = run_folder() + "/nodes";
  std::string nodes;
  const std::vector<int> ports = ports_.next(ranks);
  for (const int port : ports) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(nodefile, nodes);
  Words dist = dist_words(*cell.mode, "job-" + std::to_string(ports[0]));
  if (resume) dist.emplace_back("--resume");
  const Words environment =
      plus(settings, {"OMP_WAIT_POLICY=passive", "TMPDIR=" + run_folder() + "/tmp"});
  if (cell.start == Start::launched) {
    Words launch{"launch", "--nodefile", nodefile};
    if (!cell.mode->async && !resume) launch = plus(launch, {"--restarts", "3"});
    team.start(-1, plus(plus(launch, {"--"}), dist), environment,
               path_of_log(run_folder(), -1, prefix));
    return;
  }
  for (int rank = 0; rank < ranks; ++rank)
    team.start(
        rank, plus(plus({"dist"}, dist), {"--nodefile", nodefile, "--index", std::to_string(rank)}),
        environment, path_of_log(run_folder(), rank, prefix));
}

Undisturbed Judge::undisturbed(const Mode& mode) {
  Undisturbed all;
  for (int i = 0; i < 2; ++i) {
    fs::remove_all(run_folder());
    fs::create_directories(run_folder() + "/tmp");
    Team team(run_folder());
    begin(team, {&mode, "", 0, "", 0, Start::by_hand},
          {"AT_CALL_FOLDER=" + run_folder(), "LD_PRELOAD=" + library_}, false, "");
    bool good = team.wait({});
    for (const Member& member : team.members()) good = good && member.exit == 0;
    if (!good)
      throw std::runtime_error("an undisturbed run of " + mode.name +
                               " fails: " + read_text(run_folder() + "/rank-0.log"));
    Weights weights = read_weights(run_folder() + "/out/checkpoint.safetensors");
    if (i > 0 && !mode.async && weights != all.weights)
      throw std::runtime_error("two undisturbed runs of " + mode.name + " have other bits");
    all.weights = std::move(weights);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    all.calls[static_cast<std::size_t>(rank)] =
        read_calls(run_folder() + "/counts-" + std::to_string(rank));
    if (fs::exists(run_folder() + "/out/checkpoints/step-0000000016/rank-" + std::to_string(rank) +
                   ".safetensors"))
      all.keep.push_back(rank);
  }
  return all;
}

Outcome Judge::run(const Cell& cell, const Place& place, const Undisturbed& expected) {
  fs::remove_all(run_folder());
  fs::create_directories(run_folder() + "/tmp");
  Outcome outcome;
  {
    Team team(run_folder());
    begin(team, cell,
          {"LD_PRELOAD=" + library_, "AT_CALL_FOLDER=" + run_folder(),
           "AT_CALL_RANK=" + std::to_string(cell.rank), "AT_CALL_EVENT=" + place.event,
           "AT_CALL_NUMBER=" + std::to_string(place.number),
           std::string("AT_CALL_MOMENT=") + (place.after ? "after" : "before"),
           "AT_CALL_DELAY=" + std::to_string(place.delay_us),
           "AT_CALL_SIGNAL=" + std::to_string(cell.signal),
           std::string("AT_CALL_TARGET=") + (cell.hits_launcher() ? "parent" : "self")},
          false, "");
    Team::Limits limits;
    if (cell.signal == SIGSTOP)
      limits.resume_s =
          cell.start == Start::launched && !cell.hits_launcher() ? late_awake_s : awake_s;
    const bool all_ended = team.wait(limits);
    const std::optional<Mark> mark = read_mark(run_folder());
    bool port_taken = false;
    for (const Member& member : team.members()) {
      note(outcome.ends, who(member) + " " + std::to_string(member.exit));
      if (mark) outcome.ends += " at " + std::to_string(seconds_since(*mark, member.ended));
      port_taken =
          port_taken || (!member.log.empty() && has(read_text(member.log), "cannot listen on"));
    }
    // A run that hangs counts in any case.
    outcome.counts = !all_ended || (mark && !port_taken && team.longest_gap() < longest_gap_s);
    if (!outcome.counts) return outcome;
    if (!all_ended) {
      outcome.hung = "somebody still ran after half a minute";
    } else if (cell.start == Start::launched) {
      judge_launched(cell, team, *mark, outcome);
    } else {
      judge_by_hand(cell, team, *mark, outcome);
    }
  }
  go_on(cell, expected, outcome);
  return outcome;
}

void Judge::judge_by_hand(const Cell& cell, const Team& team, const Mark& mark,
                          Outcome& outcome) const {
  const Member& victim = *team.of_rank(cell.rank);
  const bool heard = has(read_text(victim.log), "stopped by SIGTERM");
  const bool lone = cell.mode->async && cell.mode->central && cell.rank != 0;
  double last = 0.0;
  for (const Member& member : team.members()) {
    const std::string log = read_text(member.log);
    const double ended = seconds_since(mark, member.ended);
    const auto wrong = [&](const std::string& why) {
      note(outcome.wrong, who(member) + " ended with " + std::to_string(member.exit) + ": " + why);
    };
    if (member.rank == cell.rank) {
      std::set<int> right{128 + cell.signal};
      if (cell.signal == SIGSTOP) right = {0, peer_lost, timed_out};
      if (cell.signal == SIGTERM) right.insert(0);
      if (right.count(member.exit) == 0) wrong("it was hit itself");
      if (cell.signal == SIGSTOP && ended > awake_s + promised_s)
        note(outcome.late, who(member) + " went on and took " + std::to_string(ended) + " s");
      continue;
    }
    last = std::max(last, ended);
    const bool named = lost_a_peer(member) && names(log, cell.rank);
    if (heard && member.exit != 128 + SIGTERM) {
      wrong("it was to be stopped by SIGTERM, too");
    } else if (!heard && lone && member.exit != 0 && !(meeting(cell) && named)) {
      wrong("a lost worker of an asynchronous server stops nobody");
    } else if (!heard && member.exit != 0 && !named) {
      wrong(lost_a_peer(member) ? "it does not name rank " + std::to_string(cell.rank)
                                : "no peer's loss ends a rank so");
    } else if (cell.signal == SIGTERM && victim.exit == 0 && member.exit != 0) {
      wrong("the rank with the signal ended with 0");
    }
    if (ended > promised_s + (member.exit == 0 ? rest_of_run_s : 0.0))
      note(outcome.late, who(member) + " ended after " + std::to_string(ended) + " s");
  }
  outcome.ended_s = last;
}

void Judge::judge_launched(const Cell& cell, const Team& team, const Mark& mark,
                           Outcome& outcome) const {
  const Member& launcher = *team.of_rank(-1);
  const std::string log = read_text(launcher.log);
  const bool lone = cell.mode->async && cell.mode->central && cell.rank != 0;
  const double ended = seconds_since(mark, launcher.ended);
  std::set<int> right{0};
  if (cell.hits_launcher()) {
    if (cell.signal != SIGSTOP) right = {128 + cell.signal};
    if (cell.signal == SIGTERM) right.insert(0);
  } else if (cell.mode->async) {
    right = {128 + cell.signal, 0, peer_lost, timed_out};
    if (cell.signal == SIGSTOP) right.insert(128 + SIGKILL);  // launch does not wait for it.
    if (lone && !meeting(cell) && cell.signal != SIGSTOP) right = {128 + cell.signal};
    if (cell.signal == SIGTERM) right.insert(0);  // The worker had done its batches.
  } else if (cell.signal == SIGTERM) {
    right.insert(128 + SIGTERM);
  }
  if (right.count(launcher.exit) == 0)
    note(outcome.wrong, "launch ended with " + std::to_string(launcher.exit));
  const bool named = names(log, cell.rank) ||
                     has(log, "launch: rank " + std::to_string(cell.rank) + " ended") ||
                     has(log, "going on without rank " + std::to_string(cell.rank));
  // Where a signal has asked all to end, there is nobody to blame.
  const bool alone =
      cell.hits_launcher() || launcher.exit == 0 || has(log, "stopped by SIGTERM after ");
  if (!named && (!alone || has(log, " starts all ranks again")))
    note(outcome.wrong, "nobody names rank " + std::to_string(cell.rank));
  double last = ended;
  for (const Member& member : team.members()) {
    if (!member.orphan) continue;
    last = std::max(last, seconds_since(mark, member.ended));
    const bool right_end = member.exit == 128 + SIGTERM || member.exit == 0 || lost_a_peer(member);
    if (!right_end) note(outcome.wrong, "an orphan ended with " + std::to_string(member.exit));
  }
  std::istringstream again(read_text(run_folder() + "/again"));
  Mark begun;
  for (; again >> begun.time >> begun.pid;)
    outcome.again_s = std::max(outcome.again_s.value_or(0.0), seconds_since(mark, begun.time));
  if (outcome.again_s && *outcome.again_s > promised_s)
    note(outcome.late, "trained again after " + std::to_string(*outcome.again_s) + " s");
  const double rest = launcher.exit == 0 || outcome.again_s || lone ? rest_of_run_s : 0.0;
  if (last > promised_s + rest + (cell.hits_launcher() && cell.signal == SIGSTOP ? awake_s : 0.0))
    note(outcome.late, "all had ended after " + std::to_string(last) + " s");
  if (!outcome.again_s) outcome.ended_s = last;
}

/// The newest step of which every rank that writes checkpoints has a whole one; 0: none.
std::uint64_t Judge::newest_complete(const Undisturbed& expected) const {
  std::uint64_t newest = 0;
  std::error_code none;
  for (const auto& step : fs::directory_iterator(run_folder() + "/out/checkpoints", none)) {
    const std::string name = step.path().filename().string();
    const bool whole = std::all_of(expected.keep.begin(), expected.keep.end(), [&](int rank) {
      try {
        SafetensorsFile(step.path().string() + "/rank-" + std::to_string(rank) + ".safetensors")
            .verify();
        return true;
      } catch (const Error&) {
        return false;
      }
    });
    if (whole)
      newest = std::max<std::uint64_t>(newest, std::stoull(name.substr(name.find('-') + 1)));
  }
  return newest;
}

/// Starts all ranks again where the training has not come to its end, and compares the weights.
void Judge::go_on(const Cell& cell, const Undisturbed& expected, Outcome& outcome) {
  const bool trained = fs::exists(run_folder() + "/out/summary.json");
  if (cell.mode->async) {
    if (trained) compare(cell, expected, outcome);
    return;
  }
  const std::uint64_t complete = newest_complete(expected);
  Team team(run_folder());
  begin(team, cell, {}, true, "again-");
  if (!team.wait({})) note(outcome.hung, "going on hangs");
  std::string said;
  for (const Member& member : team.members()) {
    said += read_text(member.log);
    if (member.exit != 0)
      note(outcome.not_loaded,
           who(member) + " ended with " + std::to_string(member.exit) + " where it was to go on");
  }
  const std::string words = "goes on after ";
  const std::size_t at = said.find(words);
  const std::uint64_t from =
      at == std::string::npos ? 0 : std::strtoull(said.c_str() + at + words.size(), nullptr, 10);
  if (from < complete)
    note(outcome.not_loaded, "it went on after " + std::to_string(from) + " steps, and " +
                                 std::to_string(complete) + " were there");
  if (has(said, "; the checkpoint before it is tried"))
    note(outcome.not_loaded, "a checkpoint was damaged");
  compare(cell, expected, outcome);
}

void Judge::compare(const Cell& cell, const Undisturbed& expected, Outcome& outcome) const {
  try {
    const Weights weights = read_weights(run_folder() + "/out/checkpoint.safetensors");
    if (!cell.mode->async && weights != expected.weights)
      note(outcome.other_bits, "the final weights differ");
    if (!finite(weights)) note(outcome.other_bits, "the final weights are not finite");
  } catch (const std::exception& error) {
    note(outcome.other_bits, error.what());
  }
}

}  // namespace duplex::campaigns
