// Works on many machines at once, but not on too many.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tools/deploy/board.h"

namespace duplex::tools {

/// So many machines are worked on at once: all share this machine's link.
constexpr std::size_t at_once = 16;

/// One machine's turn: its number, where it shows how far it is, and when it is to stop.
using Turn = std::function<void(std::size_t machine, Board& board, const std::atomic<bool>& stop)>;

/// Gives every machine its turn, in threads. What a turn throws becomes its machine's line, and the
/// others go on. Returns the numbers of those that threw. Throws Error when SIGINT or SIGTERM
/// comes, after all turns have ended.
std::vector<std::size_t> for_all(const std::vector<std::string>& machines, const Turn& turn);

}  // namespace duplex::tools
