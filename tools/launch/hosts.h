// Functions by which duplex launch reaches the machines of a nodefile.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// Joins words to a line that a shell splits into these words.
std::string joined(const std::vector<std::string>& words);

/// This program's own path.
std::string own_path();

/// The path at which the machines of a run have this program, and the folder in which they run it.
struct Place {
  std::string program;  ///< The program's path.
  std::string folder;   ///< The folder that other machines run it in.
};

/// The same path and the same folder as here.
Place same_place();

/// Returns whether an address is this machine's.
bool is_here(const std::string& host);

/// The command that makes a shell on another machine run `script` in `folder`.
std::vector<std::string> ssh_command(const std::string& ssh, const std::string& host,
                                     const std::string& script, const std::string& folder);

/// The command that runs the program of `place`, with `words` behind its path, on a machine: here
/// as it is, and by ssh on another one, where it ends when ssh's input ends, that is with the
/// launcher.
std::vector<std::string> command_on(const std::string& host, const std::string& ssh,
                                    std::vector<std::string> words, const Place& place);

}  // namespace duplex::tools
