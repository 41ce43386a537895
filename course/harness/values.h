// Checks draw their values here, and say in words where one lies.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::course {

/// Returns values between -1 and 1, the same ones in every run.
std::vector<float> random_values(std::size_t count, std::uint64_t seed);

/// Says which element of an array with these extents, the last index running fastest, has offset
/// i: "y[0][2][1]".
std::string element(const std::string& name, std::size_t i,
                    const std::vector<std::int64_t>& extents);

}  // namespace duplex::course
