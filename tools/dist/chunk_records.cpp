#include "tools/dist/chunk_records.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/error.h"

namespace duplex::tools {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::uint64_t number(const std::string& digits) {
  if (digits.empty() || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    throw Error("a checkpoint's record of its chunks is damaged at '" + digits.substr(0, 100) +
                "'");
  return std::stoull(digits);
}

bool same(const net::ChunkRecord& a, const net::ChunkRecord& b) {
  return a.updates == b.updates && a.applied == b.applied;
}

}  // namespace

std::string text_of(const std::vector<net::ChunkRecord>& records) {
  std::string text;
  for (std::size_t from = 0; from < records.size();) {
    const net::ChunkRecord& record = records[from];
    std::size_t to = from + 1;
    while (to < records.size() && same(record, records[to])) ++to;
    if (!record.applied.empty()) {
      text += (text.empty() ? "" : ";") + std::to_string(from) + "-" + std::to_string(to - 1) +
              ":" + std::to_string(record.updates) + ":";
      for (std::size_t worker = 0; worker < record.applied.size(); ++worker)
        text += (worker == 0 ? "" : ",") + record.applied[worker].text();
    }
    from = to;
  }
  return text;
}

std::vector<net::ChunkRecord> parse_records(const std::string& text, std::size_t chunks,
                                            int workers) {
  std::vector<net::ChunkRecord> records(chunks);
  for (const std::string& group : split(text, ';')) {
    const std::vector<std::string> parts = split(group, ':');
    const std::vector<std::string> ends = parts.size() == 3 ? split(parts[0], '-') : parts;
    if (parts.size() != 3 || ends.size() != 2) number(group + "?");
    net::ChunkRecord record{number(parts[1]), {}};
    for (const std::string& applied : split(parts[2], ','))
      record.applied.push_back(net::AppliedSteps::parse(applied));
    const std::uint64_t from = number(ends[0]), to = number(ends[1]);
    if (from > to || to >= chunks || static_cast<int>(record.applied.size()) != workers)
      number(group + "?");
    for (std::uint64_t chunk = from; chunk <= to; ++chunk) records[chunk] = record;
  }
  return records;
}

std::vector<std::uint64_t> positions_of(const std::vector<net::ChunkRecord>& records) {
  std::vector<std::uint64_t> positions;
  for (const net::ChunkRecord& record : records)
    for (std::size_t worker = 0; worker < record.applied.size(); ++worker) {
      const std::uint64_t missing = record.applied[worker].first_missing();
      if (worker == positions.size()) positions.push_back(missing);
      positions[worker] = std::min(positions[worker], missing);
    }
  return positions;
}

std::vector<std::uint64_t> ends_of(const std::vector<net::ChunkRecord>& records) {
  std::vector<std::uint64_t> ends;
  for (std::size_t worker = 0; worker < positions_of(records).size(); ++worker) {
    std::vector<net::AppliedSteps> applied;
    for (const net::ChunkRecord& record : records)
      if (worker < record.applied.size()) applied.push_back(record.applied[worker]);
    ends.push_back(net::missing_of(applied, {0, net::ResumePoint::no_end}).front().end);
  }
  return ends;
}

std::string text_of(const std::vector<net::Staleness>& steps) {
  std::string text;
  int worker = -1;
  for (const net::Staleness& step : steps) {
    if (step.worker != worker)
      text += (text.empty() ? "" : ";") + std::to_string(step.worker) +
              (step.steps == 1 ? "" : "*" + std::to_string(step.steps)) + ":";
    worker = step.worker;
    text += " " + std::to_string(step.chunks) + "/" + std::to_string(step.sum) + "/" +
            std::to_string(step.most);
  }
  return text;
}

std::vector<net::Staleness> parse_staleness(const std::string& text,
                                            const std::vector<net::ChunkRecord>& records) {
  constexpr std::uint64_t widest = std::uint64_t{1} << 40U;
  std::vector<net::Staleness> steps;
  for (const std::string& of_worker : split(text, ';')) {
    const char* at = of_worker.c_str();
    char* end = nullptr;
    const auto next = [&] {
      const std::uint64_t value = std::strtoull(at, &end, 10);
      at = *end == '\0' ? end : end + 1;
      return value;
    };
    const auto worker = next();
    const std::uint64_t width = end != nullptr && *end == '*' ? next() : 1;
    if (width == 0 || width > widest) break;
    for (std::uint64_t step = 0; *at != '\0'; step += width) {
      net::Staleness entry{step, static_cast<int>(worker), 0, 0, 0, width};
      entry.chunks = next();
      entry.sum = next();
      entry.most = next();
      const bool is_in =
          std::any_of(records.begin(), records.end(), [&](const net::ChunkRecord& record) {
            return worker < record.applied.size() && record.applied[worker].has(step);
          });
      if (is_in) steps.push_back(entry);
    }
  }
  return steps;
}

}  // namespace duplex::tools
