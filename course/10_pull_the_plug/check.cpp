// Compares with trainings that are played batch by batch, and measures by killing real ones.
#include "course/10_pull_the_plug/check.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "core/error.h"
#include "course/harness/scalars.h"
#include "course/measuring/program.h"
#include "course/measuring/training_data.h"
#include "tools/launch/private_folder.h"

namespace duplex::course {
namespace {

/// Plays a synchronous training step by step.
std::int32_t played_again(std::int32_t done, std::int32_t every) {
  std::int32_t kept = 0;
  for (std::int32_t step = 1; step <= done; ++step)
    if (every > 0 && step % every == 0) kept = step;
  return done - kept;
}

/// Plays an asynchronous training batch by batch: whoever is free takes one of its own, then one of
/// those that the lost worker leaves.
double played_seconds(std::int32_t workers, std::int32_t batches, double grad, std::int32_t done) {
  std::int32_t left = batches - done;
  std::vector<std::int32_t> trained(static_cast<std::size_t>(workers - 1), batches);
  while (left-- > 0) ++*std::min_element(trained.begin(), trained.end());
  return grad * *std::max_element(trained.begin(), trained.end());
}

std::string complaint_of_least(LostPart* lost, BestInterval* best, double cost, double between) {
  // The least value is flat: a hundredth more or less of the interval changes it by 1 / 20,000.
  double least = cost / 10.0;
  for (double interval = least; interval < 10.0 * between; interval *= 1.0001)
    if (cost / interval + interval / (2.0 * between) < cost / least + least / (2.0 * between))
      least = interval;
  const std::string wrong = complaint_of_number(
      "best_interval", [=] { return best(cost, between); }, least, 1e-3);
  if (!wrong.empty()) return wrong;
  return complaint_of_number(
      "lost_part", [=] { return lost(least, cost, between); }, std::sqrt(2.0 * cost / between),
      1e-5);
}

/// This is what pull.sh prints.
struct Pulled {
  int rows = 0;
  double seconds = 0.0;
  int code = 0, on = 0;
};

/// Trains, and pulls the plug of one rank or of all ("one", "all") after so many rows. `more` are
/// launch's flags, --, and dist's. Where `data`, the data set is small random images.
Pulled pulled(const std::string& victims, int rows, const std::vector<std::string>& more,
              bool data = false) {
  const tools::PrivateFolder folder("a measurement");
  std::vector<std::string> words{"course/10_pull_the_plug/pull.sh", duplex_program(), folder.path(),
                                 victims, std::to_string(rows)};
  words.insert(words.end(), more.begin(), more.end());
  if (data) {
    write_random_images(folder.path(), 64);
    words.insert(words.end(), {"--datadir", folder.path()});
  }
  Pulled result;
  std::istringstream line(output_of("/bin/bash", words));
  if (!(line >> result.rows >> result.seconds >> result.code >> result.on))
    throw Error("course/10_pull_the_plug/pull.sh: the training did not run");
  return result;
}

double sync_batches() {
  const Pulled it = pulled("one", 20,
                           {"--local", "2", "--", "--net", "lenet", "--classes", "10", "--batch",
                            "8", "--batches", "60", "--device", "replay:0.1"});
  return 2.0 * (it.rows - it.on);
}

double measured_async_seconds() {
  return pulled(
             "one", 10,
             {"--local", "3", "--", "--net", "lenet", "--classes", "10", "--batch", "8",
              "--batches", "20", "--device", "replay:0.2", "--server", "central", "--sync", "none"})
      .seconds;
}

double checkpoint_steps() {
  const Pulled it = pulled("all", 46,
                           {"--local", "2", "--link-rate", "100Mbit/s", "--", "--net", "lenet",
                            "--batch", "1", "--batches", "64", "--threads", "1", "--device", "cpu",
                            "--overlap", "off", "--checkpoint-every", "16"},
                           true);
  if (it.code != 0)
    throw Error("the training that went on failed with exit code " + std::to_string(it.code));
  return it.rows - it.on;
}

}  // namespace

Exercise pull_the_plug_exercise(StepsAgain* again, AsyncSeconds* seconds, LostPart* lost,
                                BestInterval* best) {
  Exercise exercise;
  exercise.folder = "10_pull_the_plug";
  exercise.file = "pull_the_plug.cpp";
  exercise.check = [=] {
    const auto does_again = [=](std::int32_t done, std::int32_t every) {
      return [=] {
        return complaint_of_number(
            "steps_again", [=] { return again(done, every); }, played_again(done, every));
      };
    };
    const auto takes = [=](std::int32_t workers, std::int32_t batches, double grad,
                           std::int32_t done) {
      return [=] {
        return complaint_of_number(
            "async_seconds", [=] { return seconds(workers, batches, grad, done); },
            played_seconds(workers, batches, grad, done));
      };
    };
    const auto loses = [=](double interval, double cost, double between, double expected) {
      return [=] {
        return complaint_of_number(
            "lost_part", [=] { return lost(interval, cost, between); }, expected);
      };
    };
    const auto is_least = [=](double cost, double between) {
      return [=] { return complaint_of_least(lost, best, cost, between); };
    };
    return check_cases({
        {"no checkpoints", does_again(20, 0)},
        {"a checkpoint every 16 steps", does_again(46, 16)},
        {"the power fails right after a checkpoint", does_again(48, 16)},
        {"the power fails before the first checkpoint", does_again(15, 16)},
        {"two workers, one of them lost in the middle", takes(2, 20, 0.2, 10)},
        {"eight workers, one of them lost at once", takes(8, 70, 0.1, 0)},
        {"what is left is no multiple of those who stay", takes(4, 10, 1.0, 5)},
        {"a worker that is lost when all is done", takes(3, 12, 0.5, 12)},
        {"a checkpoint a minute that takes a second, a failure a day",
         loses(60.0, 1.0, 86400.0, 1.0 / 60.0 + 30.0 / 86400.0)},
        {"the best interval for a failure a day", is_least(1.0, 86400.0)},
        {"the best interval for a failure an hour, and slow checkpoints", is_least(20.0, 3600.0)},
    });
  };
  exercise.figures = {
      {"sync_batches",
       "batches that two workers have to train again: sync join, no checkpoints, one of them is "
       "killed after 20 of 60 steps",
       "It comes within a step, 2 batches: the step that goes on is lost, too.", sync_batches},
      {"async_seconds",
       "seconds of an asynchronous run of two workers with 20 batches of 0.2 s each, of which one "
       "is killed after 10",
       "The start takes some tenths of a second more; it comes within 10 %.",
       measured_async_seconds},
      {"checkpoint_steps",
       "steps that are trained again, where the power fails after 46 steps and a checkpoint is "
       "written every 16",
       "It comes within a step.", checkpoint_steps},
  };
  return exercise;
}

}  // namespace duplex::course
