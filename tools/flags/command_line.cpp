#include "tools/flags/command_line.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <sstream>

#include "core/error.h"

namespace duplex::tools {
namespace {

/// `allowed` is the range, both in the help text and in the message of a refusal.
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

/// Breaks the lines of a help text that are longer than a terminal is wide; CLI11 does so from
/// version 2.5 on. An option's text goes on below its beginning.
std::string wrapped(const std::string& help) {
  constexpr std::size_t width = 80, column = 30;
  std::istringstream lines(help);
  std::string text, line;
  while (std::getline(lines, line)) {
    const std::string indent(line.rfind("  ", 0) == 0 ? column : 0, ' ');
    while (line.size() > width) {
      const std::size_t space = line.rfind(' ', width);
      if (space == std::string::npos || space <= indent.size()) break;
      text += line.substr(0, line.find_last_not_of(' ', space) + 1) + '\n';
      line = indent + line.substr(space + 1);
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace

std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  const std::string name = argv[0], help = " (see duplex " + name + " --help)";
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(wrapped(app.help()).c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    // A flag that is misspelt is the likelier reason that one is missing.
    const bool misspelt =
        error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) ||
        error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    const std::vector<std::string> unknown = app.remaining();
    if (!misspelt || unknown.empty()) throw Error(name + ": " + error.what() + help, Exit::usage);
    std::string words;
    for (const std::string& word : unknown) words += " " + word;
    throw Error(name + ": unknown:" + words + help, Exit::usage);
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

CLI::Validator as_seconds() {
  return CLI::Validator(
      [](std::string& text) {
        static const std::pair<const char*, double> units[] = {
            {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"s", 1.0}};
        for (const auto& [unit, factor] : units) {
          const std::string::size_type length = std::string(unit).size();
          double value = 0.0;
          if (text.size() <= length || text.compare(text.size() - length, length, unit) != 0 ||
              !CLI::detail::lexical_cast(text.substr(0, text.size() - length), value))
            continue;
          char number[32];
          std::snprintf(number, sizeof number, "%.17g", value * factor);
          text = number;
          break;
        }
        return std::string();
      },
      "SECONDS", "seconds");
}

void add_choice(CLI::App& app, const std::string& flag, const std::vector<std::string>& words,
                const std::string& help, const std::function<void(const std::string&)>& take) {
  app.add_option_function<std::string>(flag, take, help)->check(CLI::IsMember(words));
}

}  // namespace duplex::tools
