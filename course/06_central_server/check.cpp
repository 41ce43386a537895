// Compares with sums in the order of the workers, and runs the student's server in the program.
#include "course/06_central_server/check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/error.h"
#include "course/harness/guarded.h"
#include "course/harness/values.h"
#include "course/measuring/program.h"
#include "course/measuring/training_data.h"
#include "tools/launch/private_folder.h"

namespace duplex::course {
namespace {

using Floats = std::vector<float>;

struct Functions {
  Collect* collect;
  Average* average;
  Publish* publish;
};

/// A tensor in memory that notices what is written beside it.
struct Memory {
  Memory(const Floats& values, int count_of_workers)
      : workers(static_cast<std::size_t>(count_of_workers)),
        weights("weights", values),
        gradients("gradients", workers * values.size(), 0.5F),
        collected("collected", std::vector<std::int32_t>(workers).data(), workers),
        gradient("gradient", values.size(), 0.0F),
        mean("mean", values.size(), std::nanf("")),
        result("result", 1, 0.0F) {}

  std::vector<Guarded*> all() {
    return {&weights, &gradients, &collected, &gradient, &mean, &result};
  }
  std::int32_t* marks() { return reinterpret_cast<std::int32_t*>(collected.data()); }
  exercise::Tensor tensor() {
    return {static_cast<std::int32_t>(weights.count()), static_cast<std::int32_t>(workers),
            weights.data(), gradients.data(), marks()};
  }

  std::size_t workers;
  Guarded weights, gradients, collected, gradient, mean, result;
};

std::function<std::string(std::size_t)> places(const std::string& name,
                                               const std::vector<std::int64_t>& extents) {
  return [=](std::size_t i) { return element(name, i, extents); };
}

/// The gradient of a worker.
Floats gradient_of(std::size_t count, int worker, int step = 0) {
  return random_values(count,
                       60U + 10U * static_cast<unsigned>(step) + static_cast<unsigned>(worker));
}

/// Hands the gradient of one worker over.
std::string complaint_of_one(const Functions& functions, Memory& memory, int worker,
                             const Floats& gradient, std::int32_t expected) {
  std::copy(gradient.begin(), gradient.end(), memory.gradient.data());
  const std::string complaint = complaint_of_call("collect", memory.all(), [&] {
    exercise::Tensor tensor = memory.tensor();
    memory.result.data()[0] =
        static_cast<float>(functions.collect(tensor, worker, memory.gradient.data()));
  });
  std::fill_n(memory.gradient.data(), memory.gradient.count(), std::nanf(""));
  if (!complaint.empty()) return complaint;
  const float got = memory.result.data()[0];
  if (got == static_cast<float>(expected)) return "";
  return "collect() of worker " + std::to_string(worker) + " returned " +
         number_text(static_cast<double>(got)) + ", expected " + std::to_string(expected);
}

/// Collects from workers in this order, one of whom may come twice. Looks at what is kept.
std::string complaint_of_collecting(const Functions& functions, int workers,
                                    const std::vector<int>& order) {
  constexpr std::size_t count = 5;
  Memory memory(random_values(count, 50), workers);
  const Floats weights = memory.weights.values();
  Floats expected = memory.gradients.values();
  std::vector<bool> there(static_cast<std::size_t>(workers));
  int missing = workers, step = 0;
  for (const int worker : order) {
    const Floats gradient = gradient_of(count, worker, step++);
    const bool again = there[static_cast<std::size_t>(worker)];
    there[static_cast<std::size_t>(worker)] = true;
    if (!again) {
      std::copy(gradient.begin(), gradient.end(),
                expected.begin() + worker * static_cast<std::ptrdiff_t>(count));
      --missing;
    }
    if (const std::string wrong =
            complaint_of_one(functions, memory, worker, gradient, again ? -1 : missing);
        !wrong.empty())
      return wrong;
    if (const std::string wrong =
            complaint_of_values(memory.gradients.data(), expected, 0.0F,
                                places("gradients", {workers, std::int64_t{count}}));
        !wrong.empty())
      return "after collect() of worker " + std::to_string(worker) + ": " + wrong;
  }
  return complaint_of_values(memory.weights.data(), weights, 0.0F,
                             places("weights", {std::int64_t{count}}));
}

/// Averages gradients [workers][count] to `expected`.
std::string complaint_of_average(const Functions& functions, const Floats& gradients, int workers,
                                 const Floats& expected) {
  Memory memory(Floats(expected.size(), 1.0F), workers);
  std::copy(gradients.begin(), gradients.end(), memory.gradients.data());
  std::fill_n(memory.marks(), workers, 1);
  const std::string complaint = complaint_of_call(
      "average", memory.all(), [&] { functions.average(memory.tensor(), memory.mean.data()); });
  if (!complaint.empty()) return complaint;
  return complaint_of_values(memory.mean.data(), expected, 1e-7F,
                             places("mean", {static_cast<std::int64_t>(expected.size())}));
}

std::string complaint_of_publish(const Functions& functions) {
  Memory memory({1.0F, -2.0F, 0.5F}, 2);
  const Floats mean{10.0F, 0.0F, -4.0F};
  std::copy(mean.begin(), mean.end(), memory.mean.data());
  std::fill_n(memory.marks(), 2, 1);
  const std::string complaint = complaint_of_call("publish", memory.all(), [&] {
    exercise::Tensor tensor = memory.tensor();
    functions.publish(tensor, memory.mean.data(), 0.25F);
  });
  if (!complaint.empty()) return complaint;
  for (int worker = 0; worker < 2; ++worker)
    if (memory.marks()[worker] != 0)
      return "collected[" + std::to_string(worker) + "] is " +
             std::to_string(memory.marks()[worker]) +
             " after publish(), expected 0: the next step has collected nothing";
  return complaint_of_values(memory.weights.data(), {-1.5F, -2.0F, 1.5F}, 1e-7F,
                             places("weights", {3}));
}

/// Two steps of three workers, whose gradients come in another order each time.
std::string complaint_of_steps(const Functions& functions) {
  constexpr std::size_t count = 40;
  constexpr int workers = 3;
  Memory memory(random_values(count, 51), workers);
  Floats expected = memory.weights.values();
  const std::vector<std::vector<int>> orders{{2, 0, 1}, {1, 2, 0}};
  for (int step = 0; step < 2; ++step) {
    std::int32_t missing = workers;
    for (const int worker : orders[static_cast<std::size_t>(step)])
      if (const std::string wrong = complaint_of_one(functions, memory, worker,
                                                     gradient_of(count, worker, step), --missing);
          !wrong.empty())
        return "step " + std::to_string(step) + ": " + wrong;
    const std::string complaint = complaint_of_call("publish", memory.all(), [&] {
      exercise::Tensor tensor = memory.tensor();
      functions.average(tensor, memory.mean.data());
      functions.publish(tensor, memory.mean.data(), 0.1F);
    });
    if (!complaint.empty()) return complaint;
    for (std::size_t i = 0; i < count; ++i) {
      double sum = 0.0;
      for (int worker = 0; worker < workers; ++worker)
        sum += static_cast<double>(gradient_of(count, worker, step)[i]);
      expected[i] -= static_cast<float>(0.1 * sum / workers);
    }
    if (const std::string wrong = complaint_of_values(memory.weights.data(), expected, 1e-5F,
                                                      places("weights", {std::int64_t{count}}));
        !wrong.empty())
      return "after step " + std::to_string(step) + ": " + wrong;
  }
  return "";
}

/// Trains LeNet with the server and two workers, and alone with the mean of two batches a step.
std::string complaint_of_training(const std::string& program) {
  const tools::PrivateFolder folder("a measurement");
  write_random_images(folder.path(), 64);
  const auto flags = [&](const std::string& run, const std::string& batches) {
    return std::vector<std::string>{"--net",     "lenet", "--datadir", folder.path(),
                                    "--batch",   "4",     "--threads", "1",
                                    "--device",  "cpu",   "--lr",      "0.05",
                                    "--batches", batches, "--logdir",  folder.path() + "/" + run};
  };
  std::vector<std::string> launch{"launch", "--local", "3", "--", "--server", "central"};
  for (const std::string& each : flags("dist", "6")) launch.push_back(each);
  std::vector<std::string> local{"local", "--accumulate", "2"};
  for (const std::string& each : flags("local", "12")) local.push_back(each);
  try {
    output_of(program, launch, std::chrono::seconds(10));
  } catch (const Error& error) {
    return std::string(error.what()) +
           "; rank 0 runs your functions: start it yourself, as the page says, to see what it said";
  }
  output_of(local);
  const Floats got = weights_in(folder.path() + "/dist/checkpoint.safetensors");
  const Floats expected = weights_in(folder.path() + "/local/checkpoint.safetensors");
  if (got.size() != expected.size()) return "the server's weights are not those of LeNet";
  const std::string wrong = complaint_of_values(
      got.data(), expected, 1e-6F, places("weights", {static_cast<std::int64_t>(expected.size())}));
  return wrong.empty() ? ""
                       : "the weights are not those of one machine that adds up two batches a "
                         "step: " +
                             wrong;
}

/// Runs a server and two workers with replayed computing on a slow link. Returns the numbers that
/// the run's file has.
double measured(const std::string& program, const std::string& overlap, const std::string& file,
                const std::vector<std::string>& names) {
  const tools::PrivateFolder folder("a measurement");
  output_of(program, {"launch",    "--local",
                      "3",         "--link-rate",
                      "100Mbit/s", "--",
                      "--net",     "lenet",
                      "--classes", "10",
                      "--batch",   "8",
                      "--batches", "12",
                      "--device",  "replay:0.05",
                      "--server",  "central",
                      "--overlap", overlap,
                      "--logdir",  folder.path() + "/run"});
  return number_in(folder.path() + "/run/" + file, names);
}

}  // namespace

Exercise central_server_exercise(Collect* collect, Average* average, Publish* publish,
                                 const std::string& program) {
  const Functions functions{collect, average, publish};
  Exercise exercise;
  exercise.folder = "06_central_server";
  exercise.file = "central_server.cpp";
  exercise.check = [=] {
    const auto collects = [=](int workers, const std::vector<int>& order) {
      return [=] { return complaint_of_collecting(functions, workers, order); };
    };
    const auto averages = [=](const Floats& gradients, int workers, const Floats& expected) {
      return [=] { return complaint_of_average(functions, gradients, workers, expected); };
    };
    return check_cases({
        {"one worker's gradient", collects(1, {0})},
        {"two workers' gradients", collects(2, {0, 1})},
        {"three workers in another order", collects(3, {2, 0, 1})},
        {"a gradient that comes twice", collects(2, {1, 1, 0})},
        {"the mean of two", averages({1.0F, 2.0F, 3.0F, 6.0F}, 2, {2.0F, 4.0F})},
        {"the order in which three are added",
         averages({1e17F, 1.0F, 1.0F, 1e17F, -1e17F, -1e17F}, 3, {0.0F, 0.0F})},
        {"new weights", [=] { return complaint_of_publish(functions); }},
        {"two steps of three workers", [=] { return complaint_of_steps(functions); }},
        {"dist with your server and two workers", [=] { return complaint_of_training(program); }},
    });
  };
  exercise.known = [] {
    return std::string(
        "LeNet has 431,080 parameters; the workers replay a t_grad of 0.05 s on links of "
        "100 Mbit/s");
  };
  exercise.figures = {
      {"megabytes_in", "megabytes (1e6 bytes) that the server's link carries inwards in a step",
       "The gradients alone come within 0.1 %.",
       [=] {
         return 1e-6 * measured(program, "on", "rank-0.json", {"traffic", "step_received"});
       }},
      {"strict_seconds", "seconds of a step if nothing overlaps (--overlap off)",
       "(4.7) comes within 5 %.",
       [=] {
         return measured(program, "off", "summary.json", {"step_s", "median"});
       }},
      {"overlap_seconds", "seconds of a step if all that can overlap does (--overlap on)",
       "N c + g / 3 comes within 15 %; (4.4) is above it.",
       [=] {
         return measured(program, "on", "summary.json", {"step_s", "median"});
       }},
  };
  return exercise;
}

}  // namespace duplex::course
