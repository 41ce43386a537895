// What all commands do with CLI11: parse, answer --help, turn a bad flag into one line and exit
// code 2.
#pragma once
#include <CLI/CLI.hpp>

#include <optional>

namespace duplex::tools {

/// Parses. Gives an exit code where the command is done already (--help); throws Error(Exit::usage)
/// with the command's name, what is wrong and where help is to be had.
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv);

/// Finite numbers from `low` to `high`, of at least `low`, and above 0; for add_option()->check().
CLI::Validator between(double low, double high);
CLI::Validator at_least(double low);
CLI::Validator positive();

/// For add_option()->transform(): seconds may have a unit, "800ms", "50us", "2s".
CLI::Validator as_seconds();

}  // namespace duplex::tools
