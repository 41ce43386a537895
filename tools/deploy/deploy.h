// Puts the bundle and a run's files onto many machines at once, and takes them away again.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "tools/deploy/bundle.h"
#include "tools/deploy/deployed.h"

namespace duplex::tools {

/// The machines, and how they are reached.
struct Machines {
  std::string ssh = "ssh";
  std::vector<std::string> hosts;  ///< Each once. This machine may be among them.
};

/// The files that machines are to have.
struct Cargo {
  const Bundle* bundle = nullptr;   ///< None: only the files below.
  std::vector<DeployedFile> texts;  ///< Small files of lines, such as the key.
  std::vector<DeployedFile> files;  ///< Large ones: what a cut transfer has left is kept.
  std::string run;                  ///< The logdir of a run that begins; empty: none does.
};

/// Gives all machines what they lack of it, checked by digests, and says a line for each. This
/// machine gets the bundle alone, since it has the files. Where some fail the others are finished;
/// then it throws Error that names those that have failed. `answered`, which may be null, gets the
/// other machines that have the small files now, also where it throws.
void deploy(const Deployed& target, const Machines& machines, const Cargo& cargo,
            std::vector<std::string>* answered = nullptr);

/// Removes a key that was for one run alone, by its name there, from machines other than this one.
/// It says nothing of those where that fails.
void remove_key(const Deployed& target, const Machines& machines, const std::string& key);

/// Removes from all machines what deploy() has put there. Results of runs that are not at home yet
/// stay. Throws Error that names the machines where that failed.
void undeploy(const Deployed& target, const Machines& machines);

/// A run whose results come home.
struct EndedRun {
  std::string logdir;    ///< Here.
  std::string nodefile;  ///< Its path on the other machines.
  std::string key;       ///< The name of the key's file there, if it was for this run alone.
  bool well = false;     ///< It has ended well, and undeploy() may remove what is there of it.
  std::vector<std::string> lost;  ///< Hosts that it has gone on without: they may be off.
};

/// Copies the files of a run from the other machines, once its ranks there have ended, into its
/// logdir, where they are not or are older; checkpoints stay there. Removes its own key from them.
/// Throws Error if that failed on a machine that is not lost.
void bring_home(const Deployed& target, const Machines& machines, const EndedRun& run);

/// Moves a file, or copies it where it comes to another file system: `to` is whole or not there.
/// Throws fs::filesystem_error.
void move_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// The command that makes a machine run a script of scripts.h: by ssh, or here.
std::vector<std::string> script_command(const std::string& ssh, const std::string& host,
                                        const std::vector<std::string>& script);

}  // namespace duplex::tools
