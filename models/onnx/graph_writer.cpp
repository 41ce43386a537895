#include <vector>

#include "core/error.h"
#include "core/files/output_file.h"
#include "models/onnx/fields.h"
#include "models/onnx/graph.h"

namespace duplex::models::onnx {
namespace {

constexpr int ir_version = 7, opset_version = 13;
constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 31) - 1;

std::string text_of(const std::string& name, const Attribute& attribute) {
  MessageWriter writer;
  writer.bytes(field::attribute::name, name);
  writer.number(field::attribute::type, static_cast<int>(attribute.type));
  if (attribute.type == Attribute::Type::decimal)
    writer.decimal(field::attribute::decimal, attribute.decimal);
  if (attribute.type == Attribute::Type::number)
    writer.number(field::attribute::number, attribute.number);
  for (const std::int64_t number : attribute.numbers)
    writer.number(field::attribute::numbers, number);
  return writer.str();
}

std::string text_of(const Node& node) {
  MessageWriter writer;
  for (const std::string& input : node.inputs) writer.bytes(field::node::input, input);
  for (const std::string& output : node.outputs) writer.bytes(field::node::output, output);
  writer.bytes(field::node::name, node.name);
  writer.bytes(field::node::type, node.type);
  for (const auto& [name, attribute] : node.attributes)
    writer.bytes(field::node::attribute, text_of(name, attribute));
  return writer.str();
}

std::string text_of(const Value& value) {
  MessageWriter shape;
  for (const std::int64_t extent : value.extents) {
    MessageWriter dimension;
    if (extent > 0)
      dimension.number(field::shape::value, extent);
    else
      dimension.bytes(field::shape::variable, "N");
    shape.bytes(field::shape::extent, dimension.str());
  }
  MessageWriter tensor, type, writer;
  tensor.number(field::type::element, static_cast<int>(Constant::Type::float32));
  tensor.bytes(field::type::shape, shape.str());
  type.bytes(field::type::tensor, tensor.str());
  writer.bytes(field::value::name, value.name);
  writer.bytes(field::value::type, type.str());
  return writer.str();
}

std::uint64_t value_bytes(const Constant& constant) {
  return constant.type == Constant::Type::float32
             ? static_cast<std::uint64_t>(constant.elements()) * sizeof(float)
             : 0;
}

/// All of a constant but its floats, which come behind it.
std::string text_of(const Constant& constant) {
  MessageWriter writer;
  for (const std::int64_t extent : constant.extents) writer.number(field::tensor::extents, extent);
  writer.number(field::tensor::type, static_cast<int>(constant.type));
  writer.bytes(field::tensor::name, constant.name);
  for (const std::int64_t number : constant.numbers) writer.number(field::tensor::numbers, number);
  if (constant.type == Constant::Type::float32)
    writer.begin_bytes(field::tensor::raw, value_bytes(constant));
  return writer.str();
}

}  // namespace

void write_graph(const std::string& path, const Graph& graph) {
  MessageWriter body;
  for (const Node& node : graph.nodes) body.bytes(field::graph::node, text_of(node));
  body.bytes(field::graph::name, graph.name);
  body.bytes(field::graph::doc, graph.about);
  for (const Value& input : graph.inputs) body.bytes(field::graph::input, text_of(input));
  for (const Value& output : graph.outputs) body.bytes(field::graph::output, text_of(output));
  std::uint64_t size = body.str().size();
  std::vector<std::string> constants;
  for (const Constant& constant : graph.constants) {
    const std::string text = text_of(constant);
    MessageWriter begin;
    begin.begin_bytes(field::graph::initializer, text.size() + value_bytes(constant));
    constants.push_back(begin.str() + text);
    size += constants.back().size() + value_bytes(constant);
  }

  MessageWriter opset, model;
  opset.bytes(field::opset::domain, "");
  opset.number(field::opset::version, opset_version);
  model.number(field::model::ir_version, ir_version);
  model.bytes(field::model::producer, "Duplex");
  model.bytes(field::model::opset, opset.str());
  model.begin_bytes(field::model::graph, size);
  if (model.str().size() + size > most_bytes)
    throw Error(path + ": an ONNX file has less than 2 GiB; this network would take " +
                std::to_string(size >> 20) + " MiB");
  OutputFile file(path);
  file.write(model.str());
  file.write(body.str());
  std::vector<float> values;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    file.write(constants[i]);
    if (value_bytes(graph.constants[i]) == 0) continue;
    values.resize(static_cast<std::size_t>(graph.constants[i].elements()));
    graph.constants[i].values(values.data());
    file.write(values.data(), values.size() * sizeof(float));
  }
  file.commit();
}

}  // namespace duplex::models::onnx
