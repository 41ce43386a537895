// What this program is.
#pragma once
#include <string>

namespace duplex::tools {

/// The version of the whole, in releases.
constexpr const char* program_version = "1.0";

/// The commit that was built, "-dirty" behind it where files had been changed; "unknown" outside of
/// a checkout. The Makefile writes its definition (build/gen/version.cpp).
extern const char* const built_commit;

/// Lines: version and commit, compiler, backends with what they find here, protocol.
std::string version_text();

}  // namespace duplex::tools
