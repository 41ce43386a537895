// Collects errors of writing metrics, accuracy, ledger and checkpoints. They do not end the
// training, but change the exit code at its end.
#pragma once
#include <functional>
#include <mutex>
#include <string>

#include "core/error.h"
#include "tools/text/say.h"

namespace duplex::tools {

/// Any thread may add one.
class Troubles {
 public:
  /// Tells the user at once, and keeps the first.
  void add(const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    say(what + "; the training goes on");
    if (first_.empty()) first_ = what;
  }
  /// Keeps one that the user has been told of, if it is the first.
  void keep(const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_.empty()) first_ = what;
  }
  /// Calls what writes something at the end of the training. Where it throws Error, tells the user
  /// and keeps that, if it is the first, and returns false.
  bool attempt(const std::function<void()>& write) {
    try {
      write();
      return true;
    } catch (const Error& error) {
      say(error.what());
      keep(error.what());
      return false;
    }
  }
  /// The first; "": there was none. Call it when nobody adds any more.
  const std::string& first() const { return first_; }
  /// Call it when all else is done: throws Error if there was any.
  void raise() const {
    if (!first_.empty()) throw Error("the run was trained to its end, but " + first_);
  }

 private:
  std::mutex mutex_;  ///< Guards first_, until raise() is called.
  std::string first_;
};

}  // namespace duplex::tools
