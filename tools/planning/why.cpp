// Compares two strategies term by term, and writes all terms of every way for other programs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/planning/answer.h"
#include "tools/planning/step_bytes.h"
#include "tools/text/quartiles.h"
#include "tools/text/size.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// The machine whose link needs longest for its bytes of a step, in the direction that has more.
struct BusiestLink {
  int machine = 0;
  double seconds = 0.0;  ///< The least time that the bytes take.
};

BusiestLink busiest_link(const Situation& situation, const Strategy& strategy) {
  const std::vector<RankBytes> bytes = rank_bytes(situation, strategy);
  BusiestLink busiest;
  for (std::size_t rank = 0; rank < strategy.machines.size(); ++rank) {
    const int machine = strategy.machines[rank];
    const double seconds = std::max(bytes[rank].out, bytes[rank].in) /
                           situation.machines[static_cast<std::size_t>(machine)].rate;
    if (seconds > busiest.seconds) busiest = {machine, seconds};
  }
  return busiest;
}

double images_a_step(const Evaluation& evaluation) {
  return evaluation.step / evaluation.image;
}

std::string megabytes(double bytes) {
  return fixed(bytes * 1e-6, 2) + " MB";
}

std::string milliseconds(double seconds) {
  return fixed(seconds * 1e3, 3) + " ms";
}

}  // namespace

std::string comparison(const Situation& situation, const Evaluation& a, const Evaluation& b) {
  Table table({{"", Table::Align::left},
               {a.strategy.name(), Table::Align::right},
               {b.strategy.name(), Table::Align::right}});
  const auto row = [&](const std::string& name, const auto& term) {
    table.row({name, term(a), term(b)});
  };
  const auto an_image = [](const Evaluation& each, double seconds) {
    return milliseconds(seconds / images_a_step(each));
  };
  row("speedup", [](const Evaluation& each) { return fixed(each.speedup, 2); });
  row("an image", [](const Evaluation& each) { return milliseconds(each.image); });
  row("  computing", [&](const Evaluation& each) { return an_image(each, each.computing); });
  row("  waiting for weights",
      [&](const Evaluation& each) { return an_image(each, each.awaiting); });
  row("  else", [&](const Evaluation& each) {
    return an_image(each, std::max(each.step - each.computing - each.awaiting, 0.0));
  });
  row("a step", [](const Evaluation& each) { return milliseconds(each.step); });
  row("images in it", [](const Evaluation& each) { return fixed(images_a_step(each), 0); });
  row("a worker sends", [&](const Evaluation& each) {
    return megabytes(step_bytes(situation, each.strategy).worker_out);
  });
  row("the server sends", [&](const Evaluation& each) {
    return each.strategy.parallel.central()
               ? megabytes(step_bytes(situation, each.strategy).server_out)
               : std::string("-");
  });
  row("the busiest link is", [&](const Evaluation& each) {
    return "machine " + std::to_string(busiest_link(situation, each.strategy).machine) + "'s";
  });
  row("  at work a step", [&](const Evaluation& each) {
    return milliseconds(busiest_link(situation, each.strategy).seconds);
  });
  if (situation.memory)
    row("memory of a rank, at most", [&](const Evaluation& each) {
      return mebibytes(situation.memory(each.strategy)) + " MiB";
    });
  row("bound by", [&](const Evaluation& each) { return binding(situation, each); });
  const bool first = a.image <= b.image;
  const Evaluation &fast = first ? a : b, &slow = first ? b : a;
  const auto more = [&](double slow_part, double fast_part) {
    return milliseconds(slow_part / images_a_step(slow) - fast_part / images_a_step(fast));
  };
  return table.str() + "\n" + fast.strategy.name() + " is " + fixed(slow.image / fast.image, 2) +
         " times as fast: of the " + milliseconds(slow.image - fast.image) +
         " that an image takes\nlonger with " + slow.strategy.name() + ", " +
         more(slow.awaiting, fast.awaiting) + " are waiting for weights and " +
         more(slow.computing, fast.computing) + " computing.\n";
}

std::string json_of(const Situation& situation, const SearchResult& found,
                    const std::optional<BreakEven>& break_even) {
  nlohmann::ordered_json json;
  const auto numbers = [](double value) -> nlohmann::ordered_json {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  const Evaluation* best = found.best_exact();
  json["pays"] = found.pays();
  json["best"] =
      best == nullptr ? nlohmann::ordered_json() : nlohmann::ordered_json(best->strategy.name());
  json["verdict"] = verdict(situation, found, break_even);
  json["link_factor_at_break_even"] =
      break_even ? nlohmann::ordered_json(break_even->links) : nlohmann::ordered_json();
  json["machine_alone"] = found.alone;
  json["image_s_alone"] = found.image_alone;
  json["ways"] = nlohmann::ordered_json::array();
  const std::vector<std::string> bound = bindings(situation, found.ways);
  for (const Evaluation& each : found.ways) {
    const Strategy& strategy = each.strategy;
    const StepBytes bytes = step_bytes(situation, strategy);
    nlohmann::ordered_json way;
    way["way"] = strategy.way();
    way["workers"] = strategy.workers();
    way["machines"] = strategy.machines;
    way["shares"] = strategy.parallel.shares;
    way["cut_flags"] = strategy.parallel.cut_flags();
    way["image_s"] = each.image;
    way["speedup"] = each.speedup;
    way["equations_low"] =
        each.equations ? numbers(each.equations->first) : nlohmann::ordered_json();
    way["equations_high"] =
        each.equations ? numbers(each.equations->second) : nlohmann::ordered_json();
    way["step_s"] = each.step;
    way["computing_s"] = each.computing;
    way["awaiting_s"] = each.awaiting;
    way["worker_bytes_a_step"] = bytes.worker_out;
    way["server_bytes_a_step"] = bytes.server_out;
    way["memory_bytes"] = situation.memory ? nlohmann::ordered_json(situation.memory(strategy))
                                           : nlohmann::ordered_json();
    way["result"] = strategy.result(situation.scenario.batch);
    way["bound_by"] = bound[json["ways"].size()];
    json["ways"].push_back(std::move(way));
  }
  return json.dump(1) + "\n";
}

std::string csv_of(const Situation& situation, const SearchResult& found) {
  std::string text =
      "way,workers,image_s,speedup,equations_low,equations_high,step_s,computing_s,awaiting_s,"
      "worker_bytes_a_step,server_bytes_a_step,memory_bytes,result,bound_by\n";
  const auto number = [](double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.9g", value);
    return std::string(buffer);
  };
  const std::vector<std::string> bound = bindings(situation, found.ways);
  for (std::size_t i = 0; i < found.ways.size(); ++i) {
    const Evaluation& each = found.ways[i];
    const StepBytes bytes = step_bytes(situation, each.strategy);
    text += each.strategy.way() + "," + std::to_string(each.strategy.workers()) + "," +
            number(each.image) + "," + number(each.speedup) + "," +
            (each.equations ? number(each.equations->first) : "") + "," +
            (each.equations ? number(each.equations->second) : "") + "," + number(each.step) + "," +
            number(each.computing) + "," + number(each.awaiting) + "," + number(bytes.worker_out) +
            "," + number(bytes.server_out) + "," +
            (situation.memory ? std::to_string(situation.memory(each.strategy)) : "") + "," +
            each.strategy.result(situation.scenario.batch) + "," + bound[i] + "\n";
  }
  return text;
}

}  // namespace duplex::tools
