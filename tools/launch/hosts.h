// How duplex launch reaches the machines of a nodefile.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// Words as a shell takes them for these words.
std::string joined(const std::vector<std::string>& words);

/// This program's own path, which the other machines have it at, too.
std::string own_path();

/// Whether an address is this machine's.
bool is_here(const std::string& host);

/// The command that has a shell on another machine run `script`, in this folder's namesake there.
std::vector<std::string> ssh_command(const std::string& ssh, const std::string& host,
                                     const std::string& script);

}  // namespace duplex::tools
