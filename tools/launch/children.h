// Runs processes that live and end together: the ranks that launch starts.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace duplex::tools {

/// Says how the process of one rank has ended.
struct RankEnd {
  int code = 0;
  bool began = false;  ///< It said which rank it is, as a rank does first of all.
  bool alone = false;  ///< It said that it waited for others in vain.
};

/// Says how processes that ran together have ended.
struct TogetherResult {
  int code = 0;       ///< The first exit code that is not 0; after SIGINT 130, after SIGTERM 143.
  bool lost = false;  ///< They failed since one was killed, lost, or timed out, and for no reason
                      ///< that would be there again if they started again.
  std::vector<RankEnd> ends;  ///< Of each command.
};

/// This is what run_together() does where a process fails.
struct TogetherRules {
  /// Whether the others cannot go on without it.
  std::function<bool(std::size_t number)> needed;
  /// One that is not needed was killed or lost: returns the command that starts it again, or none.
  /// May be empty.
  std::function<std::optional<std::vector<std::string>>(std::size_t number)> again;
  /// Only what is wrong is passed on. The commands say no more than that themselves, but for the
  /// line by which each says that it is there.
  bool quiet = false;
};

/// Runs all commands and passes on what they print, line by line, with their number in front, until
/// all have ended. If one fails that is needed, the others have a few seconds to end, and are then
/// ended; otherwise they go on, and it may be started again. When those that are needed have ended
/// well, whatever becomes of one that was started again does not count. SIGINT and SIGTERM are
/// passed on to all, and end the caller's later runs and pauses, too; a second one kills them.
/// Throws Error if a process cannot be made.
TogetherResult run_together(const std::vector<std::vector<std::string>>& commands,
                            const TogetherRules& rules);

/// Has SIGINT and SIGTERM noted from now on, instead of ending this program.
void note_interrupts();
/// Return how often they have come, and which of them was first; 0: none.
int interrupts();
int interruption();

/// Waits for so long, and returns 0. When SIGINT or SIGTERM has come it returns 130 or 143 at once.
int pause_together(double seconds);

}  // namespace duplex::tools
