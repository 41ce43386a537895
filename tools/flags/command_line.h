// Functions by which all commands use CLI11: they parse, answer --help, and turn a bad flag into
// one line and exit code 2.
#pragma once
#include <CLI/CLI.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace duplex::tools {

/// Parses the arguments. Returns an exit code if the command is done already (--help). Throws
/// Error(Exit::usage) with the command's name, what is wrong and where to find help.
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv);

/// Validators for add_option()->check(): finite numbers from `low` to `high`, from `low` on, and
/// above 0.
CLI::Validator between(double low, double high);
CLI::Validator at_least(double low);
CLI::Validator positive();

/// A transformer for add_option()->transform(): seconds may have a unit, as in "800ms", "50us" or
/// "2s".
CLI::Validator as_seconds();

/// Adds an option that takes one of these words, and calls `take` with it.
void add_choice(CLI::App& app, const std::string& flag, const std::vector<std::string>& words,
                const std::string& help, const std::function<void(const std::string&)>& take);

}  // namespace duplex::tools
