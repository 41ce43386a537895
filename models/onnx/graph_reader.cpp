#include <cstring>

#include "core/error.h"
#include "models/onnx/fields.h"
#include "models/onnx/graph.h"

namespace duplex::models::onnx {
namespace {

/// Appends a repeated number, which is one value or some behind another.
void append_numbers(MessageReader& reader, std::vector<std::int64_t>& to) {
  if (!reader.has_bytes()) {
    to.push_back(reader.number());
    return;
  }
  MessageReader packed(reader.bytes());
  while (!packed.at_end()) to.push_back(packed.packed_number());
}

/// Takes the floats of raw bytes, or of a list of floats.
void set_values(Constant& constant, Span raw, const std::vector<float>& decimals) {
  const auto wanted = static_cast<std::uint64_t>(constant.elements());
  if (raw.size == 0) {
    if (decimals.size() != wanted)
      throw Error("tensor '" + constant.name + "' has " + std::to_string(decimals.size()) +
                  " values, and " + std::to_string(wanted) + " by its shape");
    constant.values = [decimals](float* to) {
      if (!decimals.empty()) std::memcpy(to, decimals.data(), decimals.size() * sizeof(float));
    };
    return;
  }
  if (raw.size != wanted * sizeof(float))
    throw Error("tensor '" + constant.name + "' has " + std::to_string(raw.size) + " bytes, and " +
                std::to_string(wanted * sizeof(float)) + " by its shape");
  constant.values = [raw](float* to) { std::memcpy(to, raw.data, raw.size); };
}

void set_numbers(Constant& constant, Span raw) {
  const auto wanted = static_cast<std::uint64_t>(constant.elements());
  if (raw.size > 0) {
    if (raw.size != wanted * sizeof(std::int64_t))
      throw Error("tensor '" + constant.name + "' has " + std::to_string(raw.size) +
                  " bytes, and " + std::to_string(wanted * sizeof(std::int64_t)) + " by its shape");
    constant.numbers.resize(static_cast<std::size_t>(wanted));
    std::memcpy(constant.numbers.data(), raw.data, raw.size);
  }
  if (constant.numbers.size() != wanted)
    throw Error("tensor '" + constant.name + "' has " + std::to_string(constant.numbers.size()) +
                " values, and " + std::to_string(wanted) + " by its shape");
}

Constant constant_of(Span message) {
  Constant constant;
  std::int64_t type = 0;
  Span raw;
  std::vector<float> decimals;
  bool elsewhere = false;
  MessageReader reader(message);
  while (const int number = reader.next()) {
    if (number == field::tensor::extents) append_numbers(reader, constant.extents);
    if (number == field::tensor::type) type = reader.number();
    if (number == field::tensor::name) constant.name = reader.bytes().text();
    if (number == field::tensor::raw) raw = reader.bytes();
    if (number == field::tensor::numbers) append_numbers(reader, constant.numbers);
    if (number == field::tensor::location) elsewhere = reader.number() != 0;
    if (number == field::tensor::decimals) {
      if (reader.has_bytes()) {
        MessageReader packed(reader.bytes());
        while (!packed.at_end()) decimals.push_back(packed.packed_decimal());
      } else {
        decimals.push_back(reader.decimal());
      }
    }
  }
  if (elsewhere)
    throw Error("tensor '" + constant.name +
                "' lies in another file; export it with all weights in one file");
  constant.type = type == 1   ? Constant::Type::float32
                  : type == 7 ? Constant::Type::int64
                              : Constant::Type::other;
  if (constant.elements() < 0)
    throw Error("tensor '" + constant.name + "' has a shape that cannot be");
  if (constant.type == Constant::Type::float32) set_values(constant, raw, decimals);
  if (constant.type == Constant::Type::int64) set_numbers(constant, raw);
  return constant;
}

Value value_of(Span message) {
  Value value;
  MessageReader reader(message);
  while (const int number = reader.next()) {
    if (number == field::value::name) value.name = reader.bytes().text();
    if (number != field::value::type) continue;
    MessageReader type(reader.bytes());
    while (const int kind = type.next()) {
      if (kind != field::type::tensor) continue;
      MessageReader tensor(type.bytes());
      while (const int part = tensor.next()) {
        if (part != field::type::shape) continue;
        MessageReader shape(tensor.bytes());
        while (const int each = shape.next()) {
          if (each != field::shape::extent) continue;
          MessageReader extent(shape.bytes());
          std::int64_t size = 0;
          while (const int what = extent.next())
            if (what == field::shape::value) size = extent.number();
          value.extents.push_back(size);
        }
      }
    }
  }
  return value;
}

class GraphReader {
 public:
  Graph read(Span message) {
    MessageReader reader(message);
    while (const int number = reader.next()) {
      if (number == field::graph::node) add_node(reader.bytes());
      if (number == field::graph::name) graph_.name = reader.bytes().text();
      if (number == field::graph::initializer)
        graph_.constants.push_back(constant_of(reader.bytes()));
      if (number == field::graph::input) graph_.inputs.push_back(value_of(reader.bytes()));
      if (number == field::graph::output) graph_.outputs.push_back(value_of(reader.bytes()));
      if (number == field::graph::sparse_initializer) throw Error("it has sparse weights");
    }
    return std::move(graph_);
  }

 private:
  /// A node that only makes a constant becomes one.
  void add_node(Span message) {
    Node node;
    Constant constant;
    bool has_constant = false;
    MessageReader reader(message);
    while (const int number = reader.next()) {
      if (number == field::node::input) node.inputs.push_back(reader.bytes().text());
      if (number == field::node::output) node.outputs.push_back(reader.bytes().text());
      if (number == field::node::name) node.name = reader.bytes().text();
      if (number == field::node::type) node.type = reader.bytes().text();
      if (number == field::node::domain) {
        const std::string domain = reader.bytes().text();
        if (!domain.empty() && domain != "ai.onnx")
          throw Error("node '" + node.name + "' is of '" + domain + "', not of ONNX itself");
      }
      if (number != field::node::attribute) continue;
      std::string name;
      Attribute attribute;
      MessageReader fields(reader.bytes());
      while (const int part = fields.next()) {
        if (part == field::attribute::name) name = fields.bytes().text();
        if (part == field::attribute::decimal) attribute.decimal = fields.decimal();
        if (part == field::attribute::number) attribute.number = fields.number();
        if (part == field::attribute::text) attribute.text = fields.bytes().text();
        if (part == field::attribute::numbers) append_numbers(fields, attribute.numbers);
        if (part == field::attribute::type)
          attribute.type = static_cast<Attribute::Type>(fields.number());
        if (part == field::attribute::tensor) {
          constant = constant_of(fields.bytes());
          has_constant = true;
        }
      }
      node.attributes[name] = std::move(attribute);
    }
    if (node.outputs.empty()) throw Error("node '" + node.name + "' makes nothing");
    if (node.type == "Constant" && has_constant) {
      constant.name = node.outputs[0];
      graph_.constants.push_back(std::move(constant));
    } else {
      graph_.nodes.push_back(std::move(node));
    }
  }

  Graph graph_{};
};

}  // namespace

std::int64_t Constant::elements() const {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0 || (extent > 0 && product > most / extent)) return -1;
    product *= extent;
  }
  return product;
}

Graph read_graph(Span file) {
  Span graph;
  std::int64_t opset = 0;
  try {
    MessageReader reader(file);
    while (const int number = reader.next()) {
      if (number == field::model::graph) graph = reader.bytes();
      if (number == field::model::functions) throw Error("it has functions");
      if (number == field::model::opset) {
        std::string domain;
        std::int64_t version = 0;
        MessageReader import(reader.bytes());
        while (const int part = import.next()) {
          if (part == field::opset::domain) domain = import.bytes().text();
          if (part == field::opset::version) version = import.number();
        }
        if (domain.empty() || domain == "ai.onnx") opset = version;
      }
    }
    if (graph.data == nullptr) throw Error("it has no graph");
  } catch (const Error& error) {
    throw Error(
        std::string("it is no ONNX file, was cut short, or has what no network here needs: ") +
        error.what());
  }
  Graph read = GraphReader().read(graph);
  if (opset > 0) read.opset = opset;
  return read;
}

}  // namespace duplex::models::onnx
