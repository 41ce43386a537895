// Compares with net/topology/shard_map.cpp, and measures by duplex simulate.
#include "course/07_shares/check.h"

#include <cstring>
#include <vector>

#include "course/harness/scalars.h"
#include "course/measuring/program.h"
#include "net/topology/shard_map.h"

namespace duplex::course {
namespace {

using Integers = std::vector<std::int32_t>;

/// Integers in memory that notices what is written beside it.
Guarded guarded(const std::string& name, const Integers& values) {
  return Guarded(name, values.data(), values.size());
}

std::int32_t* integers(Guarded& memory) {
  return reinterpret_cast<std::int32_t*>(memory.data());
}

std::string complaint_of_deal(Deal* deal, const Integers& elements, int machines) {
  Guarded sizes = guarded("elements", elements);
  Guarded owner = guarded("owner", Integers(elements.size(), -1));
  sizes.seal();
  const std::string complaint = complaint_of_call("deal", {&sizes, &owner}, [&] {
    deal(static_cast<std::int32_t>(elements.size()), integers(sizes), machines, integers(owner));
  });
  if (!complaint.empty()) return complaint;
  Integers expected(elements.size());
  products_deal(static_cast<std::int32_t>(elements.size()), elements.data(), machines,
                expected.data());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int32_t got = integers(owner)[i];
    if (got != expected[i])
      return "owner[" + std::to_string(i) + "] is " + std::to_string(got) + ", expected " +
             std::to_string(expected[i]) + " (a tensor of " + std::to_string(elements[i]) +
             " elements)";
  }
  return "";
}

std::string complaint_of_seconds(StepSeconds* seconds, const std::vector<double>& share,
                                 double comm, double grad, double expected) {
  return complaint_of_number(
      "step_seconds",
      [&] { return seconds(static_cast<std::int32_t>(share.size()), share.data(), comm, grad); },
      expected);
}

/// Simulates VGG16E with the times of Table 6.1 on four machines, strictly in order.
double simulated_seconds(const std::string& shards) {
  const double grad = 0.719;
  const std::vector<double> speedups = numbers_of(
      output_of({"simulate", "--net", "vgg16e", "--workers", "4", "--server", "distributed",
                 "--sync", "join", "--t-grad", number_text(grad), "--t-comm", "5.153", "--shards",
                 shards, "--overlap", "off", "--output", "csv"}));
  // Join trains as many batches in a step as there are workers (4.23).
  return 4 * grad / speedups.at(3);
}

}  // namespace

void products_deal(std::int32_t tensors, const std::int32_t* elements, std::int32_t machines,
                   std::int32_t* owner) {
  const std::vector<std::size_t> counts(elements, elements + tensors);
  const auto map = net::ShardMap::distributed(counts, machines, net::Shards::tensors);
  for (std::size_t p = 0; p < counts.size(); ++p) owner[p] = map[map.first(p)].owner;
}

Exercise shares_exercise(Deal* deal, StepSeconds* seconds) {
  Exercise exercise;
  exercise.folder = "07_shares";
  exercise.file = "shares.cpp";
  exercise.check = [=] {
    const auto deals = [=](const Integers& elements, int machines) {
      return [=] { return complaint_of_deal(deal, elements, machines); };
    };
    const auto takes = [=](const std::vector<double>& share, double comm, double grad,
                           double expected) {
      return [=] { return complaint_of_seconds(seconds, share, comm, grad, expected); };
    };
    return check_cases({
        {"four tensors alike for two machines", deals({5, 5, 5, 5}, 2)},
        {"a large tensor first", deals({100, 10, 20, 30, 50}, 2)},
        {"a large tensor last, for three machines", deals({10, 20, 30, 5, 1000}, 3)},
        {"more machines than tensors", deals({7, 3}, 4)},
        {"LeNet's eight tensors for three machines",
         deals({500, 20, 25000, 50, 400000, 500, 5000, 10}, 3)},
        {"equal shares of two machines", takes({0.5, 0.5}, 1.0, 0.25, 1.25)},
        {"equal shares of five machines",
         takes({0.2, 0.2, 0.2, 0.2, 0.2}, 2.0, 0.5, 0.5 + 2 * 2.0 * 4 / 5)},
        {"one machine owns six tenths", takes({0.6, 0.2, 0.2}, 1.0, 0.0, 2 * 2 * 0.6)},
        {"one of two machines owns all", takes({1.0, 0.0}, 3.0, 1.0, 1.0 + 2 * 3.0)},
        {"a machine alone", takes({1.0}, 3.0, 1.0, 1.0)},
    });
  };
  exercise.figures = {
      {"even_seconds",
       "seconds of a step of VGG16E on four machines with equal shares, t_comm 5.153 s, t_grad "
       "0.719 s",
       "The equation comes within 1 %.", [] { return simulated_seconds("even"); }},
      {"tensors_seconds", "the same with shares by Algorithm 3.7",
       "The equation with the largest share comes within 5 %.",
       [] { return simulated_seconds("tensors"); }},
  };
  return exercise;
}

}  // namespace duplex::course
