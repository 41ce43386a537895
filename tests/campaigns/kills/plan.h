// The choices of the campaign of kills: modes, roles, phases, signals, and the exact place
// that a phase means.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace duplex::campaigns {

using Words = std::vector<std::string>;

constexpr int ranks = 3;

/// A way of training together.
struct Mode {
  std::string name;
  Words flags;
  bool central = false;
  bool async = false;
};
const std::vector<Mode>& modes();

enum class Start { by_hand, launched };  ///< How the ranks of a run are started.
std::string name_of(Start start);

/// One entry of the table: who is hit by what, when.
struct Cell {
  const Mode* mode = nullptr;
  std::string role;  ///< server, first worker, worker, owner, launcher
  int rank = 0;      ///< Whose calls are counted; the launcher is hit at a call of this rank.
  std::string phase;
  int signal = 0;
  Start start = Start::by_hand;

  bool hits_launcher() const { return role == "launcher"; }
};
const std::vector<std::string>& phases();
std::string signal_name(int signal);

/// The calls of one rank in an undisturbed run: how often each event is there, and which forward
/// primitives belong to tests.
struct Calls {
  std::map<std::string, std::uint64_t> counts;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> tests;
};
/// Reads a file counts-RANK of the library for LD_PRELOAD.
Calls read_calls(const std::string& path);

/// The exact place: before or after the event's call of that number.
struct Place {
  std::string event;
  std::uint64_t number = 1;
  bool after = false;
  int delay_us = 0;
};

/// Random numbers that depend on the seed and on the run's number alone.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t run);
  std::uint64_t below(std::uint64_t limit);  ///< From 0 to limit - 1.

 private:
  std::uint64_t state_;
};

/// All cells that these calls, by rank, have a place for.
std::vector<Cell> cells_of(const Mode& mode, const std::array<Calls, ranks>& calls);
/// A place of that phase, drawn from the calls of the cell's rank; none: there is no such place.
std::optional<Place> place_of(const std::string& phase, const Calls& calls, Dice& dice);

}  // namespace duplex::campaigns
