// The numbers of the fields in ONNX's messages (onnx.proto3 of opset 13).
#pragma once

namespace duplex::models::onnx::field {

namespace model {
constexpr int ir_version = 1, producer = 2, producer_version = 3, doc = 6, graph = 7, opset = 8,
              functions = 25;
}
namespace opset {
constexpr int domain = 1, version = 2;
}
namespace graph {
constexpr int node = 1, name = 2, initializer = 5, doc = 10, input = 11, output = 12,
              sparse_initializer = 15;
}
namespace node {
constexpr int input = 1, output = 2, name = 3, type = 4, attribute = 5, domain = 7;
}
namespace attribute {
constexpr int name = 1, decimal = 2, number = 3, text = 4, tensor = 5, numbers = 8, type = 20;
}
namespace tensor {
constexpr int extents = 1, type = 2, decimals = 4, numbers = 7, name = 8, raw = 9, location = 14;
}
namespace value {
constexpr int name = 1, type = 2;
}
namespace type {
constexpr int tensor = 1, element = 1, shape = 2;
}
namespace shape {
constexpr int extent = 1, value = 1, variable = 2;
}

}  // namespace duplex::models::onnx::field
