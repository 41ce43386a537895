// Judges how fast the links between machines are.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tools/check/groups.h"
#include "tools/check/verdict.h"
#include "tools/text/quartiles.h"
#include "tools/text/rate.h"

namespace duplex::tools {
namespace {

/// TCP carries so much of what a link of Ethernet has.
constexpr double payload_part = 0.94;

struct OneWay {
  std::size_t from, to;
  double rate;  ///< Bytes a second.
};

std::vector<OneWay> ways_of(const Survey& survey) {
  std::vector<OneWay> ways;
  for (const PairRates& pair : survey.rates)
    if (pair.trouble.empty()) {
      ways.push_back({pair.low, pair.high, pair.up});
      ways.push_back({pair.high, pair.low, pair.down});
    }
  return ways;
}

Verdict verdict_of(double part) {
  return part < poor_part ? Verdict::spoils : part < good_part ? Verdict::slower : Verdict::ok;
}

/// The median rate of a machine that is slow with more than half of the others, of two at least; 0:
/// it is none.
double slow_end(const std::vector<OneWay>& ways, std::size_t OneWay::*end, std::size_t machine,
                double usual) {
  std::vector<double> rates;
  std::size_t slow = 0;
  for (const OneWay& way : ways)
    if (way.*end == machine) {
      rates.push_back(way.rate);
      slow += way.rate < good_part * usual ? 1 : 0;
    }
  return rates.size() > 1 && 2 * slow > rates.size() ? quartiles_of(rates).median : 0.0;
}

void judge_slow(const Survey& survey, const std::vector<OneWay>& ways, double usual,
                std::vector<Finding>& findings) {
  constexpr const char* remedy =
      "All wait for the slowest link: look at its cable, its switch's port, what else uses it (the "
      "lines above may say), or leave the machine out.";
  std::set<std::size_t> slow_out, slow_in;
  for (std::size_t machine = 0; machine < survey.machines.size(); ++machine) {
    const double out = slow_end(ways, &OneWay::from, machine, usual);
    const double in = slow_end(ways, &OneWay::to, machine, usual);
    if (out > 0.0) slow_out.insert(machine);
    if (in > 0.0) slow_in.insert(machine);
    if (out <= 0.0 && in <= 0.0) continue;
    std::string text = survey.machines[machine].host;
    if (out > 0.0) text += " sends " + rate_text(out);
    if (in > 0.0) text += std::string(out > 0.0 ? " and" : "") + " takes " + rate_text(in);
    const double worst = std::min(out > 0.0 ? out : usual, in > 0.0 ? in : usual);
    findings.push_back({"rates",
                        std::max(verdict_of(worst / usual), Verdict::slower),
                        text + " (median), where others have " + rate_text(usual),
                        {machine},
                        remedy});
  }
  std::vector<OneWay> rest;
  for (const OneWay& way : ways)
    if (verdict_of(way.rate / usual) != Verdict::ok && slow_out.count(way.from) == 0 &&
        slow_in.count(way.to) == 0)
      rest.push_back(way);
  std::sort(rest.begin(), rest.end(),
            [](const OneWay& a, const OneWay& b) { return a.rate < b.rate; });
  for (const Verdict verdict : {Verdict::spoils, Verdict::slower}) {
    constexpr std::size_t most = 6;
    std::string text;
    std::set<std::size_t> machines;
    std::size_t count = 0;
    for (const OneWay& way : rest) {
      if (verdict_of(way.rate / usual) != verdict) continue;
      machines.insert({way.from, way.to});
      if (++count > most) continue;
      text += (text.empty() ? "" : ", ") + survey.machines[way.from].host + " to " +
              survey.machines[way.to].host + " " + rate_text(way.rate);
    }
    if (count > most) text += ", and " + std::to_string(count - most) + " more";
    if (count > 0)
      findings.push_back({"rates",
                          verdict,
                          text + ", where others have " + rate_text(usual),
                          {machines.begin(), machines.end()},
                          remedy});
  }
}

/// The megabits a second of the interface from one machine to another; 0: not known.
double link_rate(const Survey& survey, std::size_t from, std::size_t to) {
  const MachineFacts& facts = survey.facts[from];
  for (const InterfaceFacts& each : facts.interfaces)
    if (each.name == facts.routes[to].interface) return static_cast<double>(each.mbit) * 125e3;
  return 0.0;
}

void judge_usual(const Survey& survey, const std::vector<OneWay>& ways, double usual,
                 std::vector<Finding>& findings) {
  std::vector<double> rates, parts, trips;
  for (const OneWay& way : ways) {
    rates.push_back(way.rate);
    const double link =
        std::min(link_rate(survey, way.from, way.to), link_rate(survey, way.to, way.from));
    if (link > 0.0) parts.push_back(way.rate / (payload_part * link));
  }
  for (const PairRates& pair : survey.rates)
    if (pair.trouble.empty()) trips.push_back(pair.round_trip);
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  const std::string text = "usually " + rate_text(usual) + " each way (" + rate_text(*least) +
                           " to " + rate_text(*most) + "), round trips " +
                           duration_text(quartiles_of(trips).median);
  const double part = quartiles_of(parts).median;
  const std::vector<std::size_t> all = survey.all_present();
  if (!parts.empty() && part < good_part)
    findings.push_back(
        {"rates", Verdict::slower,
         text + ": " + std::to_string(static_cast<int>(100.0 * part)) + " % of what the links have",
         all,
         "The switch, or the processors, are slower than the links: try one pair "
         "alone with duplex transport."});
  else
    findings.push_back({"rates", Verdict::ok, text, all, ""});
}

}  // namespace

std::vector<Finding> rate_findings(const Survey& survey) {
  std::vector<Finding> findings;
  std::map<std::string, std::vector<const PairRates*>> failed;
  for (const PairRates& pair : survey.rates)
    if (!pair.trouble.empty()) failed[pair.trouble].push_back(&pair);
  for (const auto& [trouble, pairs] : failed) {
    constexpr std::size_t most = 6;
    std::string text;
    std::set<std::size_t> machines;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      machines.insert({pairs[i]->low, pairs[i]->high});
      if (i < most)
        text += (text.empty() ? "" : ", ") + survey.machines[pairs[i]->low].host + " with " +
                survey.machines[pairs[i]->high].host;
    }
    if (pairs.size() > most) text += ", and " + std::to_string(pairs.size() - most) + " more";
    findings.push_back({"rates",
                        Verdict::spoils,
                        text + ": " + trouble,
                        {machines.begin(), machines.end()},
                        "They meet, but many bytes do not come through: look at the cable, and "
                        "whether the switch takes packets as large as the MTU."});
  }
  const std::vector<OneWay> ways = ways_of(survey);
  if (!ways.empty()) {
    const double usual = usual_rate(survey);
    judge_slow(survey, ways, usual, findings);
    judge_usual(survey, ways, usual, findings);
  }
  if (survey.unmeasured > 0)
    findings.push_back(
        {"rates",
         Verdict::note,
         std::to_string(survey.unmeasured) + " pairs were not measured, since others took too long",
         {},
         "Mend what is slow, and check again."});
  return findings;
}

}  // namespace duplex::tools
