// Remembers on disk which engine of cuDNN was the fastest for a graph, so that only the first
// training on a GPU times engines, and has cuDNN compile those that it then leaves aside.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace duplex::cudnn {

/// An engine among those that cuDNN proposes for a graph. Whoever takes it checks that it is there,
/// may be used and computes the right thing: the file may be an old one, or somebody's who wrote
/// nonsense into it.
struct Choice {
  int mode = 0;              ///< Which list of proposals: 0 or 1, in the order of engines_of().
  int position = 0;          ///< In that list, from 0.
  std::int64_t engine = -1;  ///< Engine::index.
  float milliseconds = 0.0F;
};

/// The choices for one kind of GPU, one version of cuDNN, and one precision. Several processes may
/// have the same file at once: each reads what there is when it starts, and appends whole lines.
class Choices {
 public:
  /// `name` tells such a set from all others: "NVIDIA H200, cuDNN 9.19, bf16". A file that cannot
  /// be read counts as empty, and a line that is damaged as not there. `folder` is that of
  /// cache_folder().
  Choices(const std::string& folder, const std::string& name);

  /// `key` is ConvGraph::key().
  std::optional<Choice> find(const std::string& key) const;
  /// Remembers a choice, on disk, too, if that can be written.
  void keep(const std::string& key, const Choice& choice);

 private:
  std::string path_;  ///< Empty: nothing is written.
  std::map<std::string, Choice> known_;
};

/// Holds a lock that all processes of this user take while they time engines on one GPU, which
/// would disturb each other. Where there is no folder, nothing is locked.
class TimingLock {
 public:
  /// `gpu` tells the GPU from the machine's others.
  TimingLock(const std::string& folder, const std::string& gpu);
  ~TimingLock();
  TimingLock(const TimingLock&) = delete;
  TimingLock& operator=(const TimingLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace duplex::cudnn
