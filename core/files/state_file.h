// Named arrays of a running program, written to a safetensors file and read back into their places.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/shape.h"

namespace duplex {

/// An array and where its values are: shape.elements() floats in logical order.
struct StateArray {
  std::string name;
  Shape shape;
  std::function<void(float* to)> get;  ///< Copies the values out. May be empty: never saved.
  std::function<void(const float* from)> set;  ///< Takes values. May be empty: never loaded.
};

/// Writes all arrays and `metadata`. The file appears whole or not at all.
void save_state(const std::string& path, const std::vector<StateArray>& arrays,
                const std::map<std::string, std::string>& metadata);

/// Reads a file that holds exactly these arrays, in any order, and sets one after the other, in the
/// order of `arrays`. Others whose name begins with `ignored` may be there; "": there are none.
/// Returns the metadata. Throws Error, before anything is set, for a file that is damaged, or
/// listing the names that are missing, of another shape, or unknown; the message calls the arrays
/// `what`.
std::map<std::string, std::string> load_state(const std::string& path,
                                              const std::vector<StateArray>& arrays,
                                              const std::string& what,
                                              const std::string& ignored = "");

}  // namespace duplex
