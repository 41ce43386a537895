#include "tools/check/report.h"

#include <sstream>
#include <utility>

#include "net/wire/frame.h"
#include "tools/run_directory/json_fields.h"
#include "tools/text/table.h"
#include "tools/text/wrap.h"

namespace duplex::tools {
namespace {

/// A pair as JSON has it.
struct PairRow {
  std::string from, to;
  double rate, back, round_trip;
  std::string trouble;
};

template <class Fields>
void describe(Fields& f, PairRow& r) {
  f.field("from", r.from);
  f.field("to", r.to);
  f.field("bytes_per_s", r.rate);
  f.field("back_bytes_per_s", r.back);
  f.field("round_trip_s", r.round_trip);
  f.field("trouble", r.trouble);
}

template <class T>
nlohmann::ordered_json json_of(T value) {
  JsonWriter writer;
  describe(writer, value);
  return writer.take();
}

}  // namespace

std::string check_table(const Survey& survey, const std::vector<Finding>& findings) {
  using Align = Table::Align;
  constexpr std::size_t width = 80, subjects = 10, verdicts = 7, gaps = 4;
  Table table(
      {{"subject", Align::left}, {"verdict", Align::left}, {"what was found", Align::left}});
  std::string before;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    std::string text = net::printable(finding.text);
    // A remedy of several findings in a row is said once.
    const bool again = i + 1 < findings.size() && findings[i + 1].subject == finding.subject &&
                       findings[i + 1].remedy == finding.remedy;
    if (!finding.remedy.empty() && !again) text += "\n-> " + net::printable(finding.remedy);
    std::istringstream lines(wrap(text, width - subjects - verdicts - gaps));
    bool first = true;
    for (std::string line; std::getline(lines, line); first = false)
      table.row({first && finding.subject != before ? finding.subject : "",
                 first ? name_of(finding.verdict) : "", line});
    before = finding.subject;
  }
  std::size_t counts[4] = {};
  for (const Finding& finding : findings) ++counts[static_cast<std::size_t>(finding.verdict)];
  const auto count = [&](Verdict verdict, const char* what) {
    const std::size_t number = counts[static_cast<std::size_t>(verdict)];
    return std::to_string(number) + " " + what;
  };
  std::string sum = std::to_string(survey.machines.size()) +
                    (survey.machines.size() == 1 ? " machine: " : " machines: ");
  if (worst(findings) <= Verdict::note)
    sum += "nothing is in the way of a run.";
  else
    sum += count(Verdict::spoils, "that spoil a run, ") +
           count(Verdict::slower, "that slow it down, ") + count(Verdict::note, "to know.");
  return table.str() + "\n" + sum + "\n";
}

std::string check_json(const Survey& survey, const std::vector<Finding>& findings) {
  using Json = nlohmann::ordered_json;
  const auto host = [&](std::size_t machine) { return survey.machines[machine].host; };
  Json all{{"version", run_files_version}, {"verdict", name_of(worst(findings))}};
  all["findings"] = Json::array();
  for (const Finding& finding : findings) {
    Json machines = Json::array();
    for (const std::size_t machine : finding.machines) machines.push_back(host(machine));
    all["findings"].push_back({{"subject", finding.subject},
                               {"verdict", name_of(finding.verdict)},
                               {"text", finding.text},
                               {"machines", machines},
                               {"remedy", finding.remedy}});
  }
  all["machines"] = Json::array();
  all["calls"] = Json::array();
  all["rates"] = Json::array();
  for (std::size_t machine = 0; machine < survey.machines.size(); ++machine) {
    Json row{{"host", host(machine)}, {"reached", survey.present(machine)}};
    if (survey.present(machine))
      row["facts"] = json_of(survey.facts[machine]);
    else
      row["trouble"] = survey.absent[machine]->reason;
    all["machines"].push_back(row);
    for (const CallFacts& call : survey.calls[machine])
      all["calls"].push_back({{"from", host(machine)},
                              {"to", host(static_cast<std::size_t>(call.peer))},
                              {"port", call.port},
                              {"call", name_of(call.call)},
                              {"trouble", call.trouble}});
  }
  for (const PairRates& pair : survey.rates)
    all["rates"].push_back(json_of(PairRow{host(pair.low), host(pair.high), pair.up, pair.down,
                                           pair.round_trip, pair.trouble}));
  return all.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace duplex::tools
