// The scripts that machines run, for a plain sh with tar, gzip, sha256sum and the usual file
// commands, such as busybox has them. Their words come as arguments, so that no text of a user's is
// ever part of a script. A line that they say for the launcher begins with script_line.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::tools {

/// Every folder of launch --deploy has a file of this name in it.
constexpr const char* deploy_marker = ".duplex-deploy";

/// Each returns the words of a command: sh -c SCRIPT sh ARGUMENTS.

/// Says what the machine is and what it has. `machine` is the processor that the bundle is for. The
/// input has a line for each question:
///   p PATH          is this file of the bundle there?       have DIGEST ./PATH
///   x PATH          the same, if it may be run
///   f NAME          how much is there of this file?         file NAME DIGEST, or part NAME BYTES
///   t NAME LINES    a small file, whose lines follow: it is written
///   r NAME          a run that begins: it gets its folder, and its results are not at home
///   v               does the program run?                   runs, or fails WHY
/// It says `whole` where the bundle's folder has its name already, `free KILOBYTES`, and `end`.
std::vector<std::string> look_script(const std::string& folder, const std::string& bundle,
                                     const std::string& machine);

/// Unpacks an archive of the bundle's files, from the input, beside what is there of them; checks
/// all, and gives the folder its name. `was_whole`: the machine has said so; otherwise nothing is
/// done where all is there meanwhile.
std::vector<std::string> program_script(const std::string& folder, const std::string& bundle,
                                        const std::string& manifest_digest, bool was_whole);

/// Appends the input to a file, of which `offset` bytes are there, and gives it its name when it
/// has all `bytes` and the digest.
std::vector<std::string> file_script(const std::string& folder, const std::string& name,
                                     const std::string& digest, std::uint64_t offset,
                                     std::uint64_t bytes);

/// Waits until the ranks of `nodefile`, a file there, have ended, and ends them if they do not.
/// Then says `archive`, and writes an archive of a run's files, without its checkpoints, to the
/// output behind that line; nothing where there is no such run. It fails where a file cannot be
/// read, and the archive has the others.
std::vector<std::string> results_script(const std::string& folder, const std::string& bundle,
                                        const std::string& nodefile, const std::string& run);

/// Ends a run: removes `key`, a file of the folder, unless it is empty, and notes, with `home`,
/// that the results are at home.
std::vector<std::string> end_script(const std::string& folder, const std::string& run,
                                    const std::string& key, bool home);

/// Removes what deploy has made. Says `kept PATH` of a run whose results are not at home, if it has
/// any, `others` where there are other files, and `nothing` where there is no such folder.
std::vector<std::string> remove_script(const std::string& folder);

}  // namespace duplex::tools
