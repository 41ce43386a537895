// Flags that choose a network; the same for every command that takes one.
#pragma once
#include "tools/flags/command_line.h"
#include "tools/setup/model_spec.h"

namespace duplex::tools {

/// They fill in `spec`, which must outlive `app`. `required`: whether --net has to be given.
void add_model_flags(CommandLine& app, ModelSpec& spec, bool required = true);

/// Another option that takes the same as --net, such as a positional one, needs this too: it reads
/// the file that is named.
void read_file_of(Flag option, ModelSpec& spec);

/// A text as one word of a command line that every shell leaves alone, and back. --net-text has a
/// network's file so, from launch or plan for ranks of machines that do not have the file.
std::string as_word(const std::string& text);
/// Throws Error(Exit::usage) for anything that as_word has not made.
std::string from_word(const std::string& word);

/// The words of a command line that carry the network's file; none: the network is compiled, or its
/// text is too long for one word.
std::vector<std::string> carried(const ModelSpec& spec);

}  // namespace duplex::tools
