// Flags of commands: how they are declared, parsed and explained by --help. It is CLI11 that does
// so, and only command_line.cpp includes it, since a compiler takes seconds for it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace duplex::tools {

/// A rule for the text of a value.
class Rule {
 public:
  /// `apply` returns why it refuses a text, or "" if it takes it; it may change the text. `allowed`
  /// says in the help which texts it takes.
  Rule(std::function<std::string(std::string&)> apply, const std::string& allowed);
  explicit Rule(const CLI::Validator& validator);
  const CLI::Validator& validator() const { return *validator_; }

 private:
  std::shared_ptr<const CLI::Validator> validator_;
};

/// These take finite numbers from `low` to `high`, from `low` on, and above 0.
Rule between(double low, double high);
Rule at_least(double low);
Rule positive();
/// It takes these words alone.
Rule one_of(const std::vector<std::string>& words);
/// For Flag::transform(): seconds may have a unit, as in "800ms", "50us" or "2s".
Rule as_seconds();

/// A flag of a command line, which has to outlive it. All functions return the flag itself.
class Flag {
 public:
  Flag check(const Rule& rule) const;
  /// The value is what `rule` makes of the text.
  Flag transform(const Rule& rule) const;
  Flag required(bool is = true) const;
  Flag needs(Flag other) const;
  Flag excludes(Flag other) const;
  /// Its values may stand in one word, with this between them.
  Flag delimiter(char between) const;
  /// It takes so many words.
  Flag expected(int words) const;
  /// Calls `take` with every value.
  Flag each(const std::function<void(const std::string&)>& take) const;
  /// The help leaves it out.
  Flag hidden() const;
  bool operator!=(Flag other) const { return option_ != other.option_; }

 private:
  friend class CommandLine;
  explicit Flag(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

class CommandLine {
 public:
  /// `about` and `name` are the head of the help.
  explicit CommandLine(const std::string& about = "", const std::string& name = "");
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds a flag with a value ("--batch"), or an argument (a name without dashes), which fills in
  /// `value`. That has to outlive the parsing, and keeps what it has where the flag is not given.
  /// `Value` is std::string, float, double, an integer, or a std::vector or std::optional of them
  /// (command_line.cpp lists those that there are).
  template <class Value>
  Flag add_option(const std::string& name, Value& value, const std::string& help);
  /// Adds one that calls `take` with its value.
  Flag add_option_function(const std::string& name,
                           const std::function<void(const std::string&)>& take,
                           const std::string& help);
  /// Adds a flag without a value, which sets `given`.
  Flag add_flag(const std::string& name, bool& given, const std::string& help);
  /// The help ends with this text.
  void footer(const std::string& text);
  /// A word that names a command within the command: `taken()` says whether it was given. The
  /// reference lives as long as this command line.
  CommandLine& add_subcommand(const std::string& name, const std::string& about);
  void require_subcommand();
  bool taken() const;
  /// Calls `then` when all flags have been parsed.
  void when_parsed(const std::function<void()>& then);

  /// Returns a flag that was added, by a name such as "--net".
  Flag flag(const std::string& name);
  std::vector<Flag> flags();
  bool knows(const std::string& name) const;
  /// Returns how often it was given.
  std::size_t count(const std::string& name) const;
  /// Returns its last value as it was given. It has been given.
  std::string text_of(const std::string& name) const;

  /// Parses words that the user does not see. Returns false if they do not fit.
  bool fits(const std::vector<std::string>& words);

 private:
  friend std::optional<int> parse(CommandLine& app, int argc, const char* const* argv);
  explicit CommandLine(CLI::App& app);

  std::unique_ptr<CLI::App> own_;  ///< None: it belongs to the command line above.
  CLI::App* app_;
  std::vector<std::unique_ptr<CommandLine>> subcommands_;
};

/// Parses the arguments. Returns an exit code if the command is done already (--help). Throws
/// Error(Exit::usage) with the command's name, what is wrong and where to find help.
std::optional<int> parse(CommandLine& app, int argc, const char* const* argv);

/// For a function that takes a flag's value, while that is parsed: refuses it.
[[noreturn]] void refuse(const std::string& flag, const std::string& why);

/// Adds an option that takes one of these words, and calls `take` with it.
void add_choice(CommandLine& app, const std::string& flag, const std::vector<std::string>& words,
                const std::string& help, const std::function<void(const std::string&)>& take);

/// Reads a number as the value of a flag is read, whole. Returns false if it is none; `number` may
/// have changed.
bool read_number(const std::string& text, double& number);
bool read_number(const std::string& text, std::uint64_t& number);

}  // namespace duplex::tools
