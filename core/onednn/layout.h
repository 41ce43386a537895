// oneDNN's layouts of tensors, as core/tensor.h's Layout, and what this backend's own kernels must
// know of them.
#pragma once
#include <cstdint>
#include <dnnl.hpp>
#include <optional>

#include "core/tensor.h"

namespace duplex::onednn {

/// A layout that is not plain. `desc` may have other extents than the tensor's logical shape:
/// weights of a grouped convolution are (G, O/G, I/G, kh, kw) here. The row-major order of those
/// extents is the logical order.
class BlockedLayout final : public Layout {
 public:
  explicit BlockedLayout(dnnl::memory::desc desc) : desc(std::move(desc)) {}

  bool same(const Layout& other) const override;

  const dnnl::memory::desc desc;
};

dnnl::memory::dims dims_of(const Shape& shape);
/// Returns a row-major description.
dnnl::memory::desc plain_memory(const dnnl::memory::dims& dims);
/// Returns `plain`, where it is row-major, with the extents of `other`: the same elements in the
/// same order. Returns `plain` itself where extents agree or it is not row-major.
dnnl::memory::desc with_extents_of(const dnnl::memory::desc& plain,
                                   const dnnl::memory::desc& other);
/// Returns a description whose layout oneDNN chooses.
dnnl::memory::desc any_memory(const dnnl::memory::dims& dims);

/// Returns the description of a tensor's memory. Throws Error on a layout of another device.
dnnl::memory::desc memory_of(const TensorDesc& desc);
TensorDesc tensor_of(const Shape& shape, const dnnl::memory::desc& memory);

/// Says where channels lie in an activation. Each image is blocks of `block` channels, one after
/// the other; a block is pixel by pixel, with a pixel's channels side by side. block 1 is NCHW,
/// block c is NHWC, block 16 oneDNN's nChw16c.
struct ChannelBlocks {
  std::int64_t images = 0, channels = 0, pixels = 0;
  std::int64_t block = 1;
  std::int64_t padded = 0;  ///< Channels in storage: a multiple of `block`.
  dnnl::memory::format_tag tag = dnnl::memory::format_tag::undef;

  std::int64_t image_size() const { return padded * pixels; }
  /// Returns the offset of the first pixel of channel c in image n. The next pixel is `block`
  /// further.
  std::int64_t offset(std::int64_t n, std::int64_t c) const {
    return n * image_size() + c / block * block * pixels + c % block;
  }
};

/// Returns nullopt for a layout that is not of that form.
std::optional<ChannelBlocks> find_channel_blocks(const dnnl::memory::desc& memory);
/// Does the same, but throws Error for such a layout.
ChannelBlocks channel_blocks(const TensorDesc& desc);
/// Returns the description of an activation laid out like `like`, but of `shape`, which has another
/// number of channels.
TensorDesc laid_out_like(const TensorDesc& like, const Shape& shape);

}  // namespace duplex::onednn
