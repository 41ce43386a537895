#include "tools/setup/model_spec.h"

#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "models/file/reader.h"
#include "models/file/words.h"
#include "models/file/writer.h"
#include "net/crypto/digest.h"
#include "net/exchange/exchange.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {

namespace {

/// The network of a text, as the program writes it: two texts of one network have it in common.
std::string meaning_of(const std::string& text, const std::string& path) {
  return models::file::canonical_text(models::file::read_network(text, path, {}));
}

/// Returns "line 5 was 'a' and is 'b'". Comments and spaces are no difference. `now` counts the
/// lines.
std::string first_difference(const std::string& before, const std::string& now,
                             const std::string& path) {
  const auto words_of = [](const models::file::Line& line) {
    std::string words;
    for (const models::file::Word& word : line.words)
      words += (words.empty() || word.text.empty() ? "" : " ") + word.text;
    return words;
  };
  const std::vector<models::file::Line> old_lines = models::file::lines_of(before, path),
                                        new_lines = models::file::lines_of(now, path);
  const auto told = [&](const std::vector<models::file::Line>& lines, std::size_t i) {
    constexpr std::size_t longest = 60;
    return i < lines.size() ? "'" + words_of(lines[i]).substr(0, longest) + "'" : "not there";
  };
  std::size_t i = 0;
  while (i < old_lines.size() && i < new_lines.size() &&
         words_of(old_lines[i]) == words_of(new_lines[i]))
    ++i;
  const auto& lines = i < new_lines.size() ? new_lines : old_lines;
  const int number = i < lines.size() ? lines[i].words[0].line : 0;
  return "line " + std::to_string(number) + " was " + told(old_lines, i) + " and is " +
         told(new_lines, i);
}

}  // namespace

void ModelSpec::take(const std::string& value) {
  net = value;
  options.file.clear();
  if (!models::names_file(value)) return;
  try {
    options.file = models::file::text_of_file(value);
  } catch (const Error&) {
    // A run, a plan or launch may know what it had.
  }
}

void ModelSpec::take_kept(const std::string& network, const std::optional<std::string>& text,
                          const std::string& what) {
  net = network;
  if (!text || text == options.file) return;
  if (!options.file.empty() && meaning_of(*text, what) != meaning_of(options.file, net))
    throw Error(net + " is another network than in " + what + ": " +
                    first_difference(*text, options.file, net) +
                    "; give it another name, or put back what it was",
                Exit::usage);
  options.file = *text;
}

void ModelSpec::take_resumed(const std::string& directory) {
  const std::string path = directory + "/" + config_file;
  if (!models::names_file(net) || !std::filesystem::exists(path)) return;
  // Another rank of this run has claimed the file and not written it yet, or a run never began.
  if (std::filesystem::is_empty(path)) return;
  const RunConfig run = read_config(path);
  if (run.network == net) take_kept(run.network, run.network_file, path);
}

std::optional<std::string> ModelSpec::file() const {
  if (options.file.empty()) return std::nullopt;
  return options.file;
}

std::string ModelSpec::file_digest(const Model& model) const {
  if (options.file.empty()) return "";
  return "; network file " + net::short_hex(net::sha256(models::file::canonical_text(model)));
}

void ModelSpec::fill_from(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    const std::string path = directory + "/" + config_file;
    if (!std::filesystem::exists(path)) continue;  // transport trains no network.
    const RunConfig run = read_config(path);
    if (!net.empty() && net != run.network) continue;
    take_kept(run.network, run.network_file, path);
    if (options.classes == 0) options.classes = run.classes;
    set_input(run.input);
    options.auxiliary = options.auxiliary || run.auxiliary;
    options.zero_padded_shortcuts = options.zero_padded_shortcuts || run.pad_shortcuts;
    return;
  }
}

void ModelSpec::set_input(const std::string& sample) {
  long long channels = 0, height = 0;
  if (std::sscanf(sample.c_str(), "1x%lldx%lld", &channels, &height) != 2) return;
  if (options.input == 0) options.input = height;
  if (options.channels == 0) options.channels = channels;
}

RunConfig ModelSpec::config(const Model& model) const {
  RunConfig config;
  config.network = net;
  config.title = model.title();
  config.input = model.entry(0).shape.str();
  config.classes = model.classes();
  config.parameters = model.trained_parameters();
  config.auxiliary = options.auxiliary;
  config.pad_shortcuts = options.zero_padded_shortcuts;
  config.network_file = file();
  return config;
}

net::Fingerprint ModelSpec::fingerprint(const Model& model) const {
  std::vector<Span> spans;
  for (const ParameterSpec& spec : model.trained())
    spans.push_back({spec.name, static_cast<std::size_t>(spec.shape.elements()), nullptr, nullptr});
  // The text is for people; ranks compare the spans.
  if (file()) spans.push_back({models::file::canonical_text(model), 0, nullptr, nullptr});
  return net::fingerprint_of(
      model.title() + ", " + std::to_string(model.classes()) + " classes" + file_digest(model),
      spans);
}

}  // namespace duplex::tools
