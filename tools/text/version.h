// The version of this program.
#pragma once
#include <string>

namespace duplex::tools {

/// The version of the whole, as releases have it.
constexpr const char* program_version = "1.0";

/// The commit that was built, or what tells programs apart that are of none (make/commit.sh). The
/// Makefile writes its definition (build/gen/version.cpp).
extern const char* const built_commit;

/// Lines with version and commit, compiler, backends with what they find here, and protocol.
std::string version_text();

}  // namespace duplex::tools
