// Makes statements of the lines of a network's file: layers, blocks and repeats, each with its
// place. They say neither which kinds of layers nor which names there are.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "models/file/words.h"

namespace duplex::models::file {

struct Statement {
  enum class Kind { layer, block, repeat };

  Kind kind = Kind::layer;
  Word name;                ///< A repeat has its variable here.
  std::vector<Word> words;  ///< A layer has its kind and more, then the line's end.
  bool training_only = false;
  std::vector<Word> from;               ///< The names behind `from`.
  std::int64_t first = 0, last = 0;     ///< A repeat goes from one to the other.
  std::vector<Statement> statements{};  ///< Within a block or a repeat.
};

struct Header {
  Word title, known_as;                 ///< known_as.text is empty where there is none.
  std::int64_t side = 0, channels = 0;  ///< The input has them.
  std::int64_t classes = 0;             ///< 0: the file does not say.
};

struct Statements {
  Header header;
  std::vector<Statement> statements;
  Word end;
};

/// Throws Error(Exit::usage), with line and column and what was expected.
Statements statements_of(const std::string& text, const std::string& path);

/// Replaces "{i}", "{i-1}" and "{i+1}" by numbers. `values`: the variables of the repeats around a
/// word, and what they are. Throws Error(Exit::usage) for an unknown variable.
std::string filled_in(const Word& word,
                      const std::vector<std::pair<std::string, std::int64_t>>& values,
                      const std::string& path);

/// Throws Error(Exit::usage) unless the word is a name of a layer or a block: of letters, digits,
/// '_' and '-', at most 64 of them, and no word that the file's own language has.
void check_name(const std::string& path, const Word& word);

}  // namespace duplex::models::file
