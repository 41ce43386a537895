#include "tests/campaigns/kills/record.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace duplex::campaigns {
namespace {

enum Column {
  run,
  mode,
  role,
  rank,
  phase,
  start,
  signal,
  event,
  number,
  moment,
  delay_us,
  hung,
  wrong,
  late,
  not_loaded,
  other_bits,
  ended_s,
  again_s,
  ends,
  columns
};
const char* const header =
    "run,mode,role,rank,phase,start,signal,event,number,moment,delay_us,hung,wrong,late,not_loaded,"
    "other_bits,ended_s,again_s,ends";

/// A cell of a CSV file: within quotes, since it may have commas.
std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "\"" + text + "\"";
}

std::string text_of(const std::optional<double>& seconds) {
  if (!seconds) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", *seconds);
  return text;
}

using Row = std::vector<std::string>;

Row split(const std::string& line) {
  Row cells(1);
  bool within = false;
  for (const char letter : line) {
    if (letter == '"')
      within = !within;
    else if (letter == ',' && !within)
      cells.emplace_back();
    else
      cells.back() += letter;
  }
  return cells;
}

std::vector<Row> rows_of(const std::string& path) {
  std::vector<Row> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (Row row = split(line); row.size() == columns && row[run] != "run") rows.push_back(row);
  return rows;
}

/// The counts and times of a line of a table.
struct Sum {
  int runs = 0;
  int broken[other_bits - hung + 1] = {};
  std::vector<double> ended, again;

  void add(const Row& row) {
    ++runs;
    for (int column = hung; column <= other_bits; ++column)
      if (!row[static_cast<std::size_t>(column)].empty()) ++broken[column - hung];
    if (!row[ended_s].empty()) ended.push_back(std::stod(row[ended_s]));
    if (!row[again_s].empty()) again.push_back(std::stod(row[again_s]));
  }
  bool good() const {
    return std::all_of(std::begin(broken), std::end(broken), [](int count) { return count == 0; });
  }
};

std::string median_and_most(std::vector<double> seconds) {
  if (seconds.empty()) return "- | -";
  std::sort(seconds.begin(), seconds.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.2f | %.2f", seconds[seconds.size() / 2], seconds.back());
  return text;
}

void print_line(const std::string& keys, const Sum& sum) {
  std::printf("| %s | %d", keys.c_str(), sum.runs);
  for (const int count : sum.broken) std::printf(" | %d", count);
  std::printf(" | %s | %s |\n", median_and_most(sum.ended).c_str(),
              median_and_most(sum.again).c_str());
}

/// A table with a line for each value of these columns, in the order in which they come first.
void print_table(const std::vector<Row>& rows, const std::vector<int>& by, const char* names) {
  std::vector<std::string> order;
  std::map<std::string, Sum> sums;
  for (const Row& row : rows) {
    std::string key;
    for (const int column : by)
      key += (key.empty() ? "" : " | ") + row[static_cast<std::size_t>(column)];
    if (sums.count(key) == 0) order.push_back(key);
    sums[key].add(row);
  }
  std::sort(order.begin(), order.end());
  std::printf(
      "\n| %s | runs | hung | wrong ending | late | not loaded | other bits | ended, median | "
      "ended, most | again, median | again, most |\n|",
      names);
  for (std::size_t i = 0; i < by.size() + 10; ++i) std::printf("---|");
  std::printf("\n");
  for (const std::string& key : order) print_line(key, sums[key]);
}

}  // namespace

void append_row(const std::string& path, std::uint64_t run, const Cell& cell, const Place& place,
                const Outcome& outcome) {
  std::ofstream file(path, std::ios::app);
  if (file.tellp() == std::ofstream::pos_type(0)) file << header << '\n';
  file << run << ',' << quoted(cell.mode->name) << ',' << cell.role << ',' << cell.rank << ','
       << cell.phase << ',' << name_of(cell.start) << ',' << signal_name(cell.signal) << ','
       << place.event << ',' << place.number << ',' << (place.after ? "after" : "before") << ','
       << place.delay_us << ',' << quoted(outcome.hung) << ',' << quoted(outcome.wrong) << ','
       << quoted(outcome.late) << ',' << quoted(outcome.not_loaded) << ','
       << quoted(outcome.other_bits) << ',' << text_of(outcome.ended_s) << ','
       << text_of(outcome.again_s) << ',' << quoted(outcome.ends) << std::endl;
}

std::vector<std::uint64_t> runs_in(const std::string& path) {
  std::vector<std::uint64_t> runs;
  for (const Row& row : rows_of(path)) runs.push_back(std::stoull(row[run]));
  return runs;
}

bool print_tables(const std::vector<std::string>& paths) {
  std::vector<Row> rows;
  for (const std::string& path : paths)
    for (Row& row : rows_of(path)) rows.push_back(std::move(row));
  Sum all;
  for (const Row& row : rows) all.add(row);
  std::printf(
      "%d runs: %d hung, %d ended otherwise than promised, %d were late, %d loaded no "
      "checkpoint or not the newest, %d had other bits.\n",
      all.runs, all.broken[0], all.broken[1], all.broken[2], all.broken[3], all.broken[4]);
  const std::string again = median_and_most(all.again);
  std::printf(
      "From the signal until all ranks trained again (median | most, of %zu runs that "
      "launch started again): %s s.\n",
      all.again.size(), again.c_str());
  print_table(rows, {signal, start}, "signal | start");
  print_table(rows, {mode, role}, "mode | role");
  print_table(rows, {phase, signal}, "phase | signal");
  std::vector<Row> broken;
  for (const Row& row : rows) {
    Sum one;
    one.add(row);
    if (!one.good()) broken.push_back(row);
  }
  if (!broken.empty())
    print_table(broken, {mode, role, signal, phase}, "broken: mode | role | signal | phase");
  return all.good() && all.runs > 0;
}

}  // namespace duplex::campaigns
