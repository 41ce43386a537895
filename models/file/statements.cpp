#include "models/file/statements.h"

#include <algorithm>
#include <cctype>

namespace duplex::models::file {
namespace {

constexpr std::size_t longest_name = 64;

bool begins(const Line& line, const char* word) {
  return line.words[0].text == word;
}

/// Reads lines one behind another; each function leaves `at_` behind what it has read.
class Parser {
 public:
  Parser(const std::string& path, std::vector<Line> lines)
      : path_(path), lines_(std::move(lines)) {}

  Statements all() {
    Statements result;
    result.header = header();
    result.statements = statements(nullptr, 0);
    result.end = lines_[at_ - 1].words[0];
    if (at_ < lines_.size())
      throw error_at(path_, lines_[at_].words[0],
                     "the network ends in line " + std::to_string(result.end.line) +
                         "; nothing comes behind its 'end'");
    return result;
  }

 private:
  /// The next line, which has to begin with `word`, as a cursor behind that.
  Cursor line(const std::string& word, const std::string& example) {
    if (at_ == lines_.size() || !begins(lines_[at_], word.c_str())) {
      const std::string wanted = "expected a line such as '" + example + "'";
      if (at_ == lines_.size()) throw error_at(path_, last_place(), wanted + ", but the file ends");
      throw error_at(path_, lines_[at_].words[0],
                     wanted + ", not '" + lines_[at_].words[0].text.substr(0, longest_name) + "'");
    }
    Cursor cursor(path_, lines_[at_++].words);
    cursor.pass();
    return cursor;
  }

  Word last_place() const { return lines_.empty() ? Word{"", 1, 1} : lines_.back().words.back(); }

  Header header() {
    Header header;
    Cursor title = line("network", "network LeNet");
    if (title.at_end()) title.expected("the network's name");
    header.title = title.pass();
    const std::string& name = header.title.text;
    if (name.size() > longest_name ||
        std::any_of(name.begin(), name.end(), [](char c) { return c < ' ' || c > '~'; }))
      throw error_at(path_, header.title, "a network's name has at most 64 letters of ASCII");
    if (at_ < lines_.size() && begins(lines_[at_], "known")) {
      Cursor known = line("known", "known as VGG-19");
      if (!known.take("as")) known.expected("'as', as in 'known as VGG-19'");
      check_name(path_, known.word());
      header.known_as = known.pass();
      known.finish("nothing more in this line");
    }
    Cursor input = line("input", "input 224x224x3");
    read_input(input, header);
    if (at_ < lines_.size() && begins(lines_[at_], "classes")) {
      Cursor classes = line("classes", "classes 10");
      header.classes = classes.number(1, largest_number, "how many classes there are");
      classes.finish("nothing more in this line");
    }
    return header;
  }

  static void read_input(Cursor& input, Header& header) {
    const std::string& text = input.word().text;
    const auto first = text.find('x'), second = text.find('x', first + 1);
    std::int64_t width = -1;
    if (first != std::string::npos && second != std::string::npos) {
      header.side = whole_number(text.substr(0, first));
      width = whole_number(text.substr(first + 1, second - first - 1));
      header.channels = whole_number(text.substr(second + 1));
    }
    if (header.side < 1 || header.side > largest_window || width != header.side ||
        header.channels < 1 || header.channels > largest_number)
      input.expected(
          "height, width and channels such as 224x224x3, the first two alike and at most 4096");
    input.pass();
    input.finish("nothing more in this line");
  }

  /// Reads until the `end` of `around`; null: until that of the network.
  std::vector<Statement> statements(const Statement* around, int nested) {
    std::vector<Statement> result;
    while (at_ < lines_.size()) {
      const Line& line = lines_[at_++];
      Cursor cursor(path_, line.words);
      if (cursor.take("end")) {
        cursor.finish("nothing behind 'end'");
        return result;
      }
      if (begins(line, "block") || begins(line, "repeat")) {
        if (nested == most_nested)
          throw error_at(
              path_, line.words[0],
              "blocks and repeats are nested more than " + std::to_string(most_nested) + " deep");
        Statement statement = begins(line, "block") ? block(cursor) : repeat(cursor);
        statement.statements = statements(&statement, nested + 1);
        result.push_back(std::move(statement));
      } else {
        result.push_back(layer(line));
      }
    }
    if (around == nullptr)
      throw error_at(path_, last_place(),
                     "the file ends without the network's 'end'; is some of it missing?");
    throw error_at(path_, last_place(),
                   std::string("the file ends without the 'end' of the ") +
                       (around->kind == Statement::Kind::block ? "block '" : "repeat '") +
                       around->name.text + "' of line " + std::to_string(around->name.line));
  }

  Statement layer(const Line& line) {
    Statement statement;
    statement.name = line.words[0];
    check_name(path_, statement.name);
    std::vector<Word> words(line.words.begin() + 1, line.words.end());
    read_from(words, statement);
    statement.words = std::move(words);
    return statement;
  }

  Statement block(Cursor& cursor) {
    Statement statement;
    statement.kind = Statement::Kind::block;
    cursor.take("block");
    check_name(path_, cursor.word());
    statement.name = cursor.pass();
    std::vector<Word> words;
    while (!cursor.at_end()) words.push_back(cursor.pass());
    words.push_back(cursor.word());
    read_from(words, statement);
    if (statement.from.size() > 1)
      throw error_at(path_, statement.from[1],
                     "a block begins from one layer; its layers may read others");
    Cursor(path_, words).finish("'training only', 'from' or nothing behind the block's name");
    return statement;
  }

  Statement repeat(Cursor& cursor) {
    Statement statement;
    statement.kind = Statement::Kind::repeat;
    cursor.take("repeat");
    const std::string& name = cursor.word().text;
    const bool letters =
        std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
    if (name.empty() || name.size() > 8 || !letters)
      cursor.expected("a variable, as in 'repeat i = 1 to 3'");
    statement.name = cursor.pass();
    if (!cursor.take("=")) cursor.expected("'=', as in 'repeat i = 1 to 3'");
    const auto most = static_cast<std::int64_t>(most_layers);
    statement.first = cursor.number(0, most, "where the repeat begins");
    if (!cursor.take("to")) cursor.expected("'to', as in 'repeat i = 1 to 3'");
    statement.last = cursor.number(statement.first, most, "where the repeat ends");
    cursor.finish("nothing more in this line");
    return statement;
  }

  /// Takes `from NAME, NAME` and `training only` off the end of a line's words.
  void read_from(std::vector<Word>& words, Statement& statement) const {
    const auto from = std::find_if(words.begin(), words.end(),
                                   [](const Word& word) { return word.text == "from"; });
    if (from != words.end()) {
      statement.from.assign(from + 1, words.end() - 1);
      if (statement.from.size() > most_inputs)
        throw error_at(path_, statement.from[most_inputs],
                       "a layer reads at most " + std::to_string(most_inputs) + " others");
      if (statement.from.empty())
        throw error_at(path_, words.back(),
                       "expected the name of a layer behind 'from', but the line ends");
      for (const Word& word : statement.from)
        if (word.text == "from")
          throw error_at(path_, word, "expected the name of a layer, not 'from'");
      words.erase(from + 1, words.end());
      words.back().text.clear();
    }
    const std::size_t count = words.size();
    if (count >= 3 && words[count - 3].text == "training" && words[count - 2].text == "only") {
      statement.training_only = true;
      words.erase(words.end() - 3, words.end() - 1);
    }
  }

  const std::string& path_;
  std::vector<Line> lines_;
  std::size_t at_ = 0;
};

/// The value of what stands between braces: "i", "i-1" or "i+1".
std::int64_t value_of(const std::string& inside, const Word& word,
                      const std::vector<std::pair<std::string, std::int64_t>>& values,
                      const std::string& path) {
  const std::size_t sign = inside.find_first_of("+-");
  const std::string variable = inside.substr(0, sign);
  std::int64_t more = 0;
  if (sign != std::string::npos) more = whole_number(inside.substr(sign + 1));
  std::string known;
  for (const auto& [name, value] : values) {
    known += (known.empty() ? "" : ", ") + name;
    if (name != variable || more < 0 || more > largest_number) continue;
    const std::int64_t result =
        sign != std::string::npos && inside[sign] == '-' ? value - more : value + more;
    if (result < 0) throw error_at(path, word, "{" + inside + "} is less than 0 here");
    return result;
  }
  throw error_at(
      path, word,
      known.empty()
          ? "braces stand for the number of a repeat, and there is none around this line"
          : "expected a variable of a repeat in braces (" + known + "), as it is or with +1 or -1");
}

}  // namespace

Statements statements_of(const std::string& text, const std::string& path) {
  return Parser(path, lines_of(text, path)).all();
}

std::string filled_in(const Word& word,
                      const std::vector<std::pair<std::string, std::int64_t>>& values,
                      const std::string& path) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t open = 0; (open = word.text.find('{', at)) != std::string::npos;) {
    const std::size_t close = word.text.find('}', open);
    if (close == std::string::npos) throw error_at(path, word, "the brace has no end");
    result += word.text.substr(at, open - at);
    result +=
        std::to_string(value_of(word.text.substr(open + 1, close - open - 1), word, values, path));
    at = close + 1;
  }
  return result + word.text.substr(at);
}

void check_name(const std::string& path, const Word& word) {
  static const char* const reserved[] = {"network", "known", "input", "classes", "block",
                                         "repeat",  "from",  "start", "end"};
  const std::string& name = word.text;
  std::string why;
  const auto fits = [](unsigned char letter) {
    return std::isalnum(letter) != 0 ||
           (letter != 0 &&
            std::string("_-{}+").find(static_cast<char>(letter)) != std::string::npos);
  };
  if (name.empty())
    why = "expected a name, but the line ends";
  else if (std::find(std::begin(reserved), std::end(reserved), name) != std::end(reserved))
    why = "'" + name + "' cannot be a name here: the word has a meaning of its own";
  else if (name.size() > longest_name)
    why = "a name has at most 64 letters";
  else if (!std::all_of(name.begin(), name.end(), fits))
    why = "a name has letters, digits, '_' and '-' alone";
  if (!why.empty()) throw error_at(path, word, why);
}

}  // namespace duplex::models::file
