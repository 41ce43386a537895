// Functions by which duplex launch reaches the machines of a nodefile.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// Joins words to a line that a shell splits into these words.
std::string joined(const std::vector<std::string>& words);

/// This program's own path; the other machines have it at the same one.
std::string own_path();

/// Returns whether an address is this machine's.
bool is_here(const std::string& host);

/// The command that makes a shell on another machine run `script`, in the folder of the same path
/// as this one.
std::vector<std::string> ssh_command(const std::string& ssh, const std::string& host,
                                     const std::string& script);

/// The command that runs this program, with `words` behind its path, on a machine: `words` with the
/// path here, or by ssh on another one, where it ends when ssh's input ends, that is with the
/// launcher.
std::vector<std::string> command_on(const std::string& host, const std::string& ssh,
                                    std::vector<std::string> words);

}  // namespace duplex::tools
