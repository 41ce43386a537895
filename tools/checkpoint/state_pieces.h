// Arrays that lie in the files of several ranks, cut into other pieces than they are wanted in.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "core/files/state_file.h"

namespace duplex::tools {

/// The name of a piece: "conv1.weight[4096:8192]" for the elements from 4096 on, before 8192.
std::string piece_name(const std::string& array, std::uint64_t from, std::uint64_t to);

class StatePieces {
 public:
  /// Opens the files. Throws Error for one that is damaged, or whose names contradict its shapes.
  explicit StatePieces(const std::vector<std::string>& paths);

  /// Returns whether all of an array is there, in whatever pieces or as a whole; as a whole of its
  /// shape, where some file has it so.
  bool has(const StateArray& array) const;
  /// Reads an array that is there, of several with its name the first file's, and sets it.
  void load(const StateArray& array) const;

 private:
  struct Piece {
    const SafetensorsFile* file = nullptr;
    const SafetensorsEntry* entry = nullptr;
    std::uint64_t from = 0, to = 0;  ///< Elements of the whole array.
  };
  std::vector<Piece> pieces_of(const std::string& array, std::uint64_t from,
                               std::uint64_t to) const;

  std::deque<SafetensorsFile> files_;
  std::map<std::string, std::vector<Piece>> pieces_;  ///< By the whole array's name.
  std::map<std::string, Piece> whole_;                ///< Arrays that are not cut.
};

}  // namespace duplex::tools
