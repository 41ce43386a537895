#include "models/file/kinds.h"

#include "layers/kinds/activation.h"
#include "layers/kinds/conv.h"
#include "layers/kinds/join.h"
#include "layers/kinds/linear.h"
#include "layers/kinds/loss.h"
#include "layers/kinds/normalisation.h"
#include "layers/kinds/pool.h"

namespace duplex::models::file {
namespace {

using Made = std::shared_ptr<const Layer>;

/// A layer is made of these.
struct Source {
  Cursor& words;
  const std::string& path;
  const Word& name;
  const std::vector<Shape>& x;  ///< The shapes of its inputs.
  std::int64_t classes;
  bool& used;
};

double doubled(std::int64_t value) {
  return static_cast<double>(value);
}

void check_weights(const Source& source, double weights) {
  if (weights > most_parameters)
    throw error_at(source.path, source.name, "the layer would have more than 2^36 parameters");
}

/// Reads "5x5/2" or "5x5", which is "5x5/1".
Geometry window_of(const Source& source) {
  Geometry geometry;
  if (source.words.take("whole")) {
    if (!source.words.take("map")) source.words.expected("'map', as in 'whole map'");
    return whole_map();
  }
  const std::string& text = source.words.word().text;
  const auto x = text.find('x'), slash = text.find('/');
  std::int64_t width = -1;
  if (x != std::string::npos && (slash == std::string::npos || slash > x)) {
    geometry.kernel = whole_number(text.substr(0, x));
    width = whole_number(text.substr(x + 1, slash == std::string::npos ? slash : slash - x - 1));
    if (slash != std::string::npos) geometry.stride = whole_number(text.substr(slash + 1));
  }
  if (width < 1 || width != geometry.kernel || width > largest_window || geometry.stride < 1 ||
      geometry.stride > largest_window)
    source.words.expected(
        "a square window such as 3x3 or 3x3/2 (behind '/' its stride), or 'whole map'");
  source.words.pass();
  if (source.words.take("same")) {
    geometry.mode = Geometry::Mode::same;
  } else if (source.words.take("pad")) {
    geometry.padding = source.words.number(1, largest_window, "how wide the padding is");
  } else if (!source.words.take("valid")) {
    source.words.expected("'same', 'valid' or 'pad' with its width behind the window");
  }
  return geometry;
}

/// Reads "20 filters" or "classes filters".
std::int64_t count_of(const Source& source, const std::string& what) {
  std::int64_t count = source.classes;
  if (source.words.word().text == "classes") {
    if (count == 0)
      throw error_at(source.path, source.words.word(),
                     "'classes' needs a line such as 'classes 10' below 'input'");
    source.words.pass();
    source.used = true;
  } else {
    count = source.words.number(1, largest_number, "how many " + what + " (or 'classes')");
  }
  if (!source.words.take(what)) source.words.expected("'" + what + "' behind their number");
  return count;
}

Made conv(const Source& source) {
  const Geometry geometry = window_of(source);
  const std::int64_t filters = count_of(source, "filters");
  ConvLayer::Options options;
  if (source.words.take("groups"))
    options.groups = source.words.number(1, largest_number, "how many groups");
  if (source.words.take("no")) {
    if (!source.words.take("bias")) source.words.expected("'bias', as in 'no bias'");
    options.bias = false;
  }
  options.relu = source.words.take("relu");
  source.words.finish("'groups', 'no bias', 'relu' and 'from' in this order, or the line's end");
  const Window window = geometry.window(source.x[0]);
  check_weights(source, doubled(filters) * doubled(window.height) * doubled(window.width) *
                            doubled(source.x[0].c()) / doubled(options.groups));
  return std::make_shared<ConvLayer>(filters, geometry, options);
}

Made linear(const Source& source) {
  const std::int64_t outputs = count_of(source, "outputs");
  const bool relu = source.words.take("relu");
  source.words.finish("'relu', 'from' or the line's end");
  check_weights(source, doubled(outputs) * doubled(source.x[0].elements()));
  return std::make_shared<LinearLayer>(outputs, relu);
}

Made pool(const Source& source, PoolKind kind) {
  const Geometry geometry = window_of(source);
  source.words.finish("'from' or the line's end");
  return std::make_shared<PoolLayer>(kind, geometry);
}

Made lrn(const Source& source) {
  LrnSpec spec;
  Cursor& words = source.words;
  if (words.take("size")) {
    const Word place = words.word();
    spec.size = words.number(1, largest_window, "how many channels");
    if (spec.size % 2 == 0)
      throw error_at(source.path, place, "the size has to be odd: as many channels on either side");
  }
  if (words.take("alpha")) spec.alpha = words.decimal("alpha");
  if (words.take("beta")) spec.beta = words.decimal("beta");
  if (words.take("k")) spec.k = words.decimal("k");
  words.finish(
      "'size', 'alpha', 'beta' and 'k' in this order, each with a number, 'from' or the line's "
      "end");
  return std::make_shared<LrnLayer>(spec);
}

Made batch_norm(const Source& source) {
  BatchNormSpec spec;
  Cursor& words = source.words;
  for (const auto& [name, value] :
       {std::pair("epsilon", &spec.epsilon), std::pair("momentum", &spec.momentum)}) {
    if (!words.take(name)) continue;
    const Word place = words.word();
    *value = words.decimal(name);
    if (*value > 1.0F)
      throw error_at(source.path, place, std::string(name) + " has to be from 0 to 1");
  }
  spec.relu = words.take("relu");
  words.finish("'epsilon' and 'momentum', each with a number, 'relu', 'from' or the line's end");
  return std::make_shared<BatchNormLayer>(spec);
}

Made dropout(const Source& source) {
  const std::string text = source.words.word().text;
  float rate = -1.0F;
  if (!text.empty() && text.back() == '%')
    rate = static_cast<float>(decimal_number(text.substr(0, text.size() - 1)) / 100.0);
  if (!(rate >= 0.0F && rate < 1.0F))  // 99.99999999% would be rounded up to 1.
    source.words.expected("the part that is dropped, from 0% to below 100%, such as 50%");
  source.words.pass();
  source.words.finish("'from' or the line's end");
  return std::make_shared<DropoutLayer>(rate);
}

Made pad_channels(const Source& source) {
  if (!source.words.take("to")) source.words.expected("'to', as in 'pad channels to 128'");
  const std::int64_t channels = source.words.number(1, largest_number, "to how many channels");
  source.words.finish("'from' or the line's end");
  return std::make_shared<PadChannelsLayer>(channels);
}

Made add(const Source& source) {
  const bool relu = source.words.take("relu");
  source.words.finish("'relu' or 'from'");
  return std::make_shared<AddLayer>(relu);
}

template <class Kind>
Made plain(const Source& source, const Kind& kind) {
  source.words.finish("'from' or the line's end");
  return kind();
}

Made loss(const Source& source, LossKind kind) {
  float weight = 1.0F;
  if (source.words.take("weight")) weight = source.words.decimal("the loss's weight");
  source.words.finish("'weight', 'from' or the line's end");
  return std::make_shared<LossLayer>(kind, weight);
}

struct Kind {
  const char *first, *second;  ///< The words of its name.
  int inputs;                  ///< 0: two and more.
  Made (*make)(const Source&);
};

const Kind kinds[] = {
    {"conv", "", 1, conv},
    {"linear", "", 1, linear},
    {"max", "pool", 1, [](const Source& source) { return pool(source, PoolKind::max); }},
    {"avg", "pool", 1, [](const Source& source) { return pool(source, PoolKind::average); }},
    {"lrn", "", 1, lrn},
    {"batch", "norm", 1, batch_norm},
    {"relu", "", 1,
     [](const Source& source) {
       return plain(source, [] { return std::make_shared<ActivationLayer>(ActivationKind::relu); });
     }},
    {"sigmoid", "", 1,
     [](const Source& source) {
       return plain(source,
                    [] { return std::make_shared<ActivationLayer>(ActivationKind::sigmoid); });
     }},
    {"dropout", "", 1, dropout},
    {"concat", "", 0,
     [](const Source& source) {
       return plain(source, [] { return std::make_shared<ConcatLayer>(); });
     }},
    {"add", "", 2, add},
    {"pad", "channels", 1, pad_channels},
    {"softmax", "", 1,
     [](const Source& source) { return loss(source, LossKind::softmax_cross_entropy); }},
    {"squared", "error", 1,
     [](const Source& source) { return loss(source, LossKind::squared_error); }},
};

void check_inputs(const Kind& kind, const Source& source) {
  const std::size_t count = source.x.size();
  const std::string name = std::string(kind.first) + (*kind.second != 0 ? " " : "") + kind.second;
  if (kind.inputs == 1 && count != 1)
    throw error_at(source.path, source.name,
                   name + " reads one layer, not " + std::to_string(count));
  if (kind.inputs == 2 && count != 2)
    throw error_at(source.path, source.name, name + " reads two layers, as in 'from bn2, start'");
  if (kind.inputs == 0 && count < 2)
    throw error_at(source.path, source.name, name + " reads two layers or more, as in 'from a, b'");
}

}  // namespace

std::shared_ptr<const Layer> layer_of(const Statement& statement, const std::vector<Shape>& x,
                                      std::int64_t classes, bool& used, const std::string& path) {
  Cursor words(path, statement.words);
  const Source source{words, path, statement.name, x, classes, used};
  std::string known;
  for (const Kind& kind : kinds) {
    if (words.take(kind.first, kind.second)) {
      check_inputs(kind, source);
      return kind.make(source);
    }
    known += (known.empty() ? "" : ", ") + std::string(kind.first) +
             (*kind.second != 0 ? " " : "") + kind.second;
  }
  words.expected("what kind of layer '" + statement.name.text + "' is (" + known + ")");
}

}  // namespace duplex::models::file
