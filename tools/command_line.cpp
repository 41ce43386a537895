#include "tools/command_line.h"

#include "core/error.h"

namespace duplex::tools {

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

}  // namespace duplex::tools
