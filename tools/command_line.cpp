#include "tools/command_line.h"

#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <sstream>

#include "core/error.h"

namespace duplex::tools {
namespace {

/// `allowed` is both the range in the help text and what a refusal says.
template <class Allow>
CLI::Validator numbers(const std::string& allowed, Allow allow) {
  return {[=](std::string& text) -> std::string {
            char* end = nullptr;
            const double value = std::strtod(text.c_str(), &end);
            const bool number = end != text.c_str() && *end == '\0' && std::isfinite(value);
            return number && allow(value) ? "" : "'" + text + "' is not a number " + allowed;
          },
          allowed};
}

std::string text_of(double value) {
  std::ostringstream text;
  text << std::setprecision(12) << value;
  return text.str();
}

}  // namespace

std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    const std::string name = argv[0];
    throw Error(name + ": " + error.what() + " (see duplex " + name + " --help)", Exit::usage);
  }
  return std::nullopt;
}

CLI::Validator between(double low, double high) {
  return numbers("from " + text_of(low) + " to " + text_of(high),
                 [=](double value) { return value >= low && value <= high; });
}

CLI::Validator at_least(double low) {
  return numbers("from " + text_of(low), [=](double value) { return value >= low; });
}

CLI::Validator positive() {
  return numbers("above 0", [](double value) { return value > 0.0; });
}

}  // namespace duplex::tools
