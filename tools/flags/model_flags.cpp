#include "tools/flags/model_flags.h"

#include <cctype>
#include <cstdio>

#include "core/error.h"
#include "tools/flags/command_line.h"

namespace duplex::tools {
namespace {

constexpr const char* carrying = "--net-text";

bool is_plain(unsigned char letter) {
  return std::isalnum(letter) != 0 || letter == '_' || letter == '-' || letter == '.' ||
         letter == ',' || letter == '/';
}

}  // namespace

void add_model_flags(CommandLine& app, ModelSpec& spec, bool required) {
  std::string known;
  for (const auto& [name, builder] : models::all()) known += (known.empty() ? "" : ", ") + name;
  const Flag net =
      app.add_option("--net", spec.net, "network: " + known + "; or the path of a network's file");
  read_file_of(net.required(required), spec);
  app.add_option_function(
         carrying, [&spec](const std::string& word) { spec.options.file = from_word(word); },
         "what the file of --net has, as launch and plan carry it to other machines")
      .hidden();
  app.add_option("--classes", spec.options.classes,
                 "classes (default: the data set's, else the network's)")
      .check(between(1, 1 << 20));
  app.add_option("--input", spec.options.input,
                 "height and width of the input (default: the network's)")
      .check(between(1, 4096));
  app.add_flag(
      "--auxiliary", spec.options.auxiliary,
      "googlenet: train with the auxiliary classifiers, whose losses the training loss then "
      "includes");
  app.add_flag("--pad-shortcuts", spec.options.zero_padded_shortcuts,
               "resnet34: zero-padded channels instead of 1x1 convolutions");
}

void read_file_of(Flag option, ModelSpec& spec) {
  option.each([&spec](const std::string& value) { spec.take(value); });
}

std::string as_word(const std::string& text) {
  std::string word;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    char code[4];
    std::snprintf(code, sizeof code, "%%%02x", byte);
    word += is_plain(byte) ? std::string(1, letter) : letter == ' ' ? std::string("+") : code;
  }
  return word;
}

std::string from_word(const std::string& word) {
  const auto digit = [&](std::size_t at) {
    static const std::string digits = "0123456789abcdef";
    const std::size_t value = at < word.size() ? digits.find(word[at]) : std::string::npos;
    if (value == std::string::npos)
      throw Error(std::string(carrying) + " is for launch and plan; give --net the path of a file",
                  Exit::usage);
    return static_cast<int>(value);
  };
  std::string text;
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word[at] != '%') {
      text += word[at] == '+' ? ' ' : word[at];
      continue;
    }
    text += static_cast<char>(16 * digit(at + 1) + digit(at + 2));
    at += 2;
  }
  return text;
}

std::vector<std::string> carried(const ModelSpec& spec) {
  constexpr std::size_t longest = std::size_t{100} << 10;  // Linux takes 128 KiB.
  if (!spec.file()) return {};
  std::string word = as_word(*spec.file());
  if (word.size() > longest) return {};
  return {carrying, std::move(word)};
}

}  // namespace duplex::tools
