#include "core/onednn/layout.h"

#include <array>

#include "core/error.h"
#include "core/onednn/compat.h"

namespace duplex::onednn {

using Tag = dnnl::memory::format_tag;

namespace {

Tag plain_tag(std::size_t rank) {
  constexpr std::array<Tag, 5> tags = {Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde};
  return tags.at(rank - 1);
}

}  // namespace

bool BlockedLayout::same(const Layout& other) const {
  const auto* blocked = dynamic_cast<const BlockedLayout*>(&other);
  return blocked != nullptr && blocked->desc == desc;
}

dnnl::memory::dims dims_of(const Shape& shape) {
  dnnl::memory::dims dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  if (dims.empty()) dims.push_back(1);
  return dims;
}

dnnl::memory::desc plain_memory(const dnnl::memory::dims& dims) {
  return {dims, dnnl::memory::data_type::f32, plain_tag(dims.size())};
}

dnnl::memory::desc with_extents_of(const dnnl::memory::desc& plain,
                                   const dnnl::memory::desc& other) {
  const bool is_plain = plain == plain_memory(dims_of(plain));
  return is_plain && dims_of(plain) != dims_of(other) ? plain_memory(dims_of(other)) : plain;
}

dnnl::memory::desc any_memory(const dnnl::memory::dims& dims) {
  return {dims, dnnl::memory::data_type::f32, Tag::any};
}

dnnl::memory::desc memory_of(const TensorDesc& desc) {
  if (desc.plain()) return plain_memory(dims_of(desc.shape));
  const auto* layout = dynamic_cast<const BlockedLayout*>(desc.layout.get());
  if (layout == nullptr) throw Error("onednn: tensor " + desc.shape.str() + " of another device");
  return layout->desc;
}

TensorDesc tensor_of(const Shape& shape, const dnnl::memory::desc& memory) {
  if (memory == plain_memory(dims_of(memory))) return plain_desc(shape);
  return {shape, std::make_shared<BlockedLayout>(memory), memory.get_size()};
}

std::optional<ChannelBlocks> find_channel_blocks(const dnnl::memory::desc& memory) {
  const dnnl::memory::dims dims = dims_of(memory);
  if (dims.size() < 2 || dims.size() > 4) return std::nullopt;
  ChannelBlocks blocks;
  blocks.images = dims[0];
  blocks.channels = dims[1];
  blocks.pixels = 1;
  for (std::size_t axis = 2; axis < dims.size(); ++axis) blocks.pixels *= dims[axis];
  blocks.padded = blocks.channels;
  blocks.tag = plain_tag(dims.size());
  if (memory == plain_memory(dims)) return blocks;
  if (dims.size() != 4) return std::nullopt;
  const std::array<std::pair<Tag, std::int64_t>, 4> blocked = {
      {{Tag::nChw16c, 16}, {Tag::nChw8c, 8}, {Tag::nhwc, blocks.channels}, {Tag::nChw4c, 4}}};
  for (const auto& [tag, block] : blocked) {
    if (memory != dnnl::memory::desc(dims, dnnl::memory::data_type::f32, tag)) continue;
    blocks.tag = tag;
    blocks.block = block;
    blocks.padded = (blocks.channels + block - 1) / block * block;
    return blocks;
  }
  return std::nullopt;
}

ChannelBlocks channel_blocks(const TensorDesc& desc) {
  if (desc.plain()) {
    const Shape& shape = desc.shape;
    ChannelBlocks blocks{shape.n(), shape.c(), shape.h() * shape.w()};
    blocks.padded = blocks.channels;
    blocks.tag = Tag::nchw;
    return blocks;
  }
  if (auto blocks = find_channel_blocks(memory_of(desc))) return *blocks;
  throw Error("onednn: activation " + desc.shape.str() + " in a layout without channel blocks");
}

TensorDesc laid_out_like(const TensorDesc& like, const Shape& shape) {
  if (like.plain()) return plain_desc(shape);
  return tensor_of(shape, {dims_of(shape), dnnl::memory::data_type::f32, channel_blocks(like).tag});
}

}  // namespace duplex::onednn
