#include "tools/checkpoint/state_pieces.h"

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace duplex::tools {
namespace {

/// "NAME[FROM:TO]".
struct PieceName {
  std::string array;
  std::uint64_t from = 0, to = 0;
};

std::optional<std::uint64_t> number(const std::string& digits) {
  if (digits.empty() || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoull(digits);
}

/// None: it is the name of a whole array.
std::optional<PieceName> parse(const std::string& name) {
  const std::size_t open = name.rfind('['), colon = name.rfind(':');
  if (name.empty() || name.back() != ']' || open == std::string::npos ||
      colon == std::string::npos || colon < open)
    return std::nullopt;
  const auto from = number(name.substr(open + 1, colon - open - 1));
  const auto to = number(name.substr(colon + 1, name.size() - colon - 2));
  if (!from || !to || *from >= *to) return std::nullopt;
  return PieceName{name.substr(0, open), *from, *to};
}

}  // namespace

std::string piece_name(const std::string& array, std::uint64_t from, std::uint64_t to) {
  return array + "[" + std::to_string(from) + ":" + std::to_string(to) + "]";
}

StatePieces::StatePieces(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const SafetensorsFile& file = files_.emplace_back(path);
    for (const SafetensorsEntry& entry : file.entries()) {
      const auto elements = static_cast<std::uint64_t>(entry.shape.elements());
      const auto name = parse(entry.name);
      if (name && name->to - name->from != elements)
        throw Error(path + " is damaged: " + entry.name + " has " + std::to_string(elements) +
                    " elements");
      if (name)
        pieces_[name->array].push_back({&file, &entry, name->from, name->to});
      else
        whole_.emplace(entry.name, Piece{&file, &entry, 0, elements});
      if (!name) pieces_[entry.name].push_back({&file, &entry, 0, elements});
    }
  }
  for (auto& [name, pieces] : pieces_)
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const Piece& a, const Piece& b) { return a.from < b.from; });
}

/// The pieces that hold these elements, one after the other; empty: some are missing.
std::vector<StatePieces::Piece> StatePieces::pieces_of(const std::string& array, std::uint64_t from,
                                                       std::uint64_t to) const {
  std::vector<Piece> found;
  const auto pieces = pieces_.find(array);
  if (pieces == pieces_.end()) return found;
  std::uint64_t at = from;
  for (const Piece& piece : pieces->second) {
    if (at >= to || piece.from > at) break;
    if (piece.to <= at) continue;
    found.push_back(piece);
    at = piece.to;
  }
  if (at < to) found.clear();
  return found;
}

bool StatePieces::has(const StateArray& array) const {
  if (const auto name = parse(array.name))
    return !pieces_of(name->array, name->from, name->to).empty();
  const auto whole = whole_.find(array.name);
  if (whole != whole_.end()) return whole->second.entry->shape == array.shape;
  return !pieces_of(array.name, 0, static_cast<std::uint64_t>(array.shape.elements())).empty();
}

void StatePieces::load(const StateArray& array) const {
  if (!has(array)) throw Error("no checkpoint's file has all of " + array.name);
  std::vector<float> values(static_cast<std::size_t>(array.shape.elements()));
  auto name = parse(array.name);
  const auto found = whole_.find(array.name);
  if (found != whole_.end()) {
    found->second.file->read(*found->second.entry, values.data());
  } else {
    if (!name) name = PieceName{array.name, 0, values.size()};
    std::vector<float> piece;
    std::uint64_t at = name->from;
    for (const Piece& from : pieces_of(name->array, name->from, name->to)) {
      piece.resize(static_cast<std::size_t>(from.to - from.from));
      from.file->read(*from.entry, piece.data());
      const std::uint64_t end = std::min(from.to, name->to);
      std::copy(piece.begin() + static_cast<std::ptrdiff_t>(at - from.from),
                piece.begin() + static_cast<std::ptrdiff_t>(end - from.from),
                values.begin() + static_cast<std::ptrdiff_t>(at - name->from));
      at = end;
    }
  }
  array.set(values.data());
}

}  // namespace duplex::tools
