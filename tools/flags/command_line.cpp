#include "tools/flags/command_line.h"

#include <CLI/CLI.hpp>

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
Rule numbers(const std::string& allowed, Allow allow) {
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

Rule::Rule(std::function<std::string(std::string&)> apply, const std::string& allowed)
    : Rule(CLI::Validator(std::move(apply), allowed)) {}
Rule::Rule(const CLI::Validator& validator)
    : validator_(std::make_shared<const CLI::Validator>(validator)) {}

Flag Flag::check(const Rule& rule) const {
  option_->check(rule.validator());
  return *this;
}
Flag Flag::transform(const Rule& rule) const {
  option_->transform(rule.validator());
  return *this;
}
Flag Flag::required(bool is) const {
  option_->required(is);
  return *this;
}
Flag Flag::needs(Flag other) const {
  option_->needs(other.option_);
  return *this;
}
Flag Flag::excludes(Flag other) const {
  option_->excludes(other.option_);
  return *this;
}
Flag Flag::delimiter(char between) const {
  option_->delimiter(between);
  return *this;
}
Flag Flag::expected(int words) const {
  option_->expected(words);
  return *this;
}
Flag Flag::each(const std::function<void(const std::string&)>& take) const {
  option_->each(take);
  return *this;
}
Flag Flag::hidden() const {
  option_->group("");
  return *this;
}

CommandLine::CommandLine(const std::string& about, const std::string& name)
    : own_(std::make_unique<CLI::App>(about, name)), app_(own_.get()) {}
CommandLine::CommandLine(CLI::App& app) : app_(&app) {}
CommandLine::~CommandLine() = default;

template <class Value>
Flag CommandLine::add_option(const std::string& name, Value& value, const std::string& help) {
  return Flag(app_->add_option(name, value, help));
}
using Text = const std::string&;
template Flag CommandLine::add_option(Text, std::string&, Text);
template Flag CommandLine::add_option(Text, float&, Text);
template Flag CommandLine::add_option(Text, double&, Text);
template Flag CommandLine::add_option(Text, int&, Text);
template Flag CommandLine::add_option(Text, std::int64_t&, Text);
template Flag CommandLine::add_option(Text, std::uint64_t&, Text);
template Flag CommandLine::add_option(Text, std::optional<double>&, Text);
template Flag CommandLine::add_option(Text, std::optional<int>&, Text);
template Flag CommandLine::add_option(Text, std::optional<std::int64_t>&, Text);
template Flag CommandLine::add_option(Text, std::optional<std::uint64_t>&, Text);
template Flag CommandLine::add_option(Text, std::vector<int>&, Text);
template Flag CommandLine::add_option(Text, std::vector<double>&, Text);
template Flag CommandLine::add_option(Text, std::vector<std::string>&, Text);
template Flag CommandLine::add_option(Text, std::vector<std::uint64_t>&, Text);

Flag CommandLine::add_option_function(const std::string& name,
                                      const std::function<void(const std::string&)>& take,
                                      const std::string& help) {
  return Flag(app_->add_option_function<std::string>(name, take, help));
}
Flag CommandLine::add_flag(const std::string& name, bool& given, const std::string& help) {
  return Flag(app_->add_flag(name, given, help));
}
void CommandLine::footer(const std::string& text) {
  app_->footer(text);
}
CommandLine& CommandLine::add_subcommand(const std::string& name, const std::string& about) {
  subcommands_.emplace_back(new CommandLine(*app_->add_subcommand(name, about)));
  return *subcommands_.back();
}
void CommandLine::require_subcommand() {
  app_->require_subcommand(1);
}
bool CommandLine::taken() const {
  return app_->parsed();
}
void CommandLine::when_parsed(const std::function<void()>& then) {
  app_->parse_complete_callback(then);
}

Flag CommandLine::flag(const std::string& name) {
  return Flag(app_->get_option(name));
}
std::vector<Flag> CommandLine::flags() {
  std::vector<Flag> all;
  for (CLI::Option* option : app_->get_options()) all.push_back(Flag(option));
  return all;
}
bool CommandLine::knows(const std::string& name) const {
  return app_->get_option_no_throw(name) != nullptr;
}
std::size_t CommandLine::count(const std::string& name) const {
  return app_->count(name);
}
std::string CommandLine::text_of(const std::string& name) const {
  return app_->get_option(name)->results().back();
}

bool CommandLine::fits(const std::vector<std::string>& words) {
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Error&) {
    return false;
  }
  return true;
}

std::optional<int> parse(CommandLine& command, int argc, const char* const* argv) {
  CLI::App& app = *command.app_;
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

Rule between(double low, double high) {
  return numbers("from " + text_of(low) + " to " + text_of(high),
                 [=](double value) { return value >= low && value <= high; });
}

Rule at_least(double low) {
  return numbers("from " + text_of(low), [=](double value) { return value >= low; });
}

Rule positive() {
  return numbers("above 0", [](double value) { return value > 0.0; });
}

Rule one_of(const std::vector<std::string>& words) {
  return Rule(CLI::IsMember(words));
}

Rule as_seconds() {
  return Rule(CLI::Validator(
      [](std::string& text) {
        static const std::pair<const char*, double> units[] = {
            {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"s", 1.0}};
        for (const auto& [unit, factor] : units) {
          const std::string::size_type length = std::string(unit).size();
          double value = 0.0;
          if (text.size() <= length || text.compare(text.size() - length, length, unit) != 0 ||
              !read_number(text.substr(0, text.size() - length), value))
            continue;
          char number[32];
          std::snprintf(number, sizeof number, "%.17g", value * factor);
          text = number;
          break;
        }
        return std::string();
      },
      "SECONDS", "seconds"));
}

void refuse(const std::string& flag, const std::string& why) {
  throw CLI::ValidationError(flag, why);
}

void add_choice(CommandLine& app, const std::string& flag, const std::vector<std::string>& words,
                const std::string& help, const std::function<void(const std::string&)>& take) {
  app.add_option_function(flag, take, help).check(one_of(words));
}

bool read_number(const std::string& text, double& number) {
  return CLI::detail::lexical_cast(text, number);
}
bool read_number(const std::string& text, std::uint64_t& number) {
  return CLI::detail::lexical_cast(text, number);
}

}  // namespace duplex::tools
