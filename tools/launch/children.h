// Runs processes that live and end together: the ranks that launch starts.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace duplex::tools {

/// Runs all commands and passes on what they print, line by line, with their number in front, until
/// all have ended. If one fails that is `needed`, the others have ten seconds to end, and are then
/// ended; otherwise they go on. SIGINT and SIGTERM end all. Returns the first exit code that is not
/// 0, or 130 after such a signal. Throws Error if a process cannot be made.
int run_together(const std::vector<std::vector<std::string>>& commands,
                 const std::function<bool(std::size_t number)>& needed);

}  // namespace duplex::tools
