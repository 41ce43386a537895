// A run on machines that have nothing: which files they need, where those are there, and what
// becomes of the results.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/deploy/deploy.h"

namespace duplex::tools {

class Deployment {
 public:
  Deployment(Deployed target, Machines machines)
      : target_(std::move(target)), machines_(std::move(machines)) {}

  /// Takes the files that flags of dist name: key, weights, the profile of a replay, and the data
  /// set where it is a file. `data`: the data set has to be sent (throws Error(Exit::usage) where
  /// it is no file), or must not be. What is not sent machines have at the same path as this one.
  /// `own_key`: the key is for this run alone, and goes from the machines when it has ended.
  void take(const std::vector<std::string>& dist, std::optional<bool> data, bool own_key);
  /// Takes a small file that `flag` of dist names, such as --nodefile or --plan.
  void take_text(const std::string& flag, const std::string& path);

  /// Gives the machines the bundle, if there is one, and the files taken since it was last called.
  /// `run`: the logdir of a run that goes on; it may be empty. Throws as deploy() does.
  void send(const Bundle* bundle, const std::string& run);

  /// The words of dist for other machines, of which `words` are for this one.
  std::vector<std::string> words_there(std::vector<std::string> words) const;
  /// The path there of the file that a flag names.
  std::string there(const std::string& flag) const { return there_.at(flag); }
  const Deployed& target() const { return target_; }
  Place place() const { return target_.place(); }

  /// Brings the results of a run home, those of `lost` hosts only if that is possible. Throws as
  /// bring_home() does, and Error where the trained weights cannot be moved to the file of --save.
  void end(const std::vector<std::string>& dist, bool ended_well,
           const std::vector<std::string>& lost) const;
  /// Removes the run's own key from the machines, where the run does not begin after all.
  void give_up() const;

 private:
  void take_data(const std::string& path, std::optional<bool> data);

  Deployed target_;
  Machines machines_;
  Cargo cargo_;
  std::string own_key_;                       ///< Its name on other machines; empty: none.
  std::vector<std::string> has_key_;          ///< The machines that have got it.
  std::map<std::string, std::string> there_;  ///< Values of dist's flags on other machines.
};

}  // namespace duplex::tools
