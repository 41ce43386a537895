// Tests that what a layer says it reads for some channels (Layer::reads) is what it reads: other
// channels of its inputs may be anything.
#include <gtest/gtest.h>

#include <set>

#include "core/random.h"
#include "layers/model.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"

namespace duplex {
namespace {

constexpr std::int64_t samples = 8;

/// A layer on the reference device, with inputs and parameters drawn at random.
class BoundHere {
 public:
  BoundHere(const Model& model, const Model::Entry& entry)
      : device_(test::backend("reference", 1)) {
    std::vector<TensorDesc> x;
    for (const Shape& shape : model.input_shapes(entry)) x.push_back(plain_desc(of_batch(shape)));
    BindContext context;
    context.relu_x.assign(x.size(), false);
    layer_ = entry.layer->bind(*device_, entry.name, x, context);
    for (const TensorDesc& desc : x) x_.push_back(drawn(desc));
    for (const TensorDesc& desc : layer_->parameters) p_.push_back(drawn(desc));
    y_ = drawn(layer_->y);
  }

  std::vector<float> forward() {
    static const std::vector<std::int32_t> labels(samples, 0);
    layer_->forward(y_, x_, p_, {true, 7, 0, labels.data()});
    return test::values_of(*device_, y_);
  }
  /// Overwrites the channels of an input that are not these.
  void spoil_others(std::size_t input, const Channels& kept) {
    const Shape& shape = x_[input].shape();
    const std::int64_t map = shape.h() * shape.w();
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const std::int64_t channel = i / map % shape.c();
      if (channel < kept.first || channel >= kept.end)
        x_[input].data[i] = 3.0F + x_[input].data[i] * x_[input].data[i];
    }
  }

 private:
  static Shape of_batch(const Shape& shape) {
    return shape.rank() == 2 ? Shape{samples, shape.c()}
                             : Shape{samples, shape.c(), shape.h(), shape.w()};
  }
  Tensor drawn(const TensorDesc& desc) {
    memory_.push_back(device_->allocate(desc.bytes));
    Tensor tensor{desc, static_cast<float*>(memory_.back().data())};
    RandomStream(5, memory_.size())
        .fill_uniform(tensor.data, static_cast<std::uint64_t>(desc.shape.elements()));
    return tensor;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<BoundLayer> layer_;
  std::vector<Buffer> memory_;
  std::vector<Tensor> x_, p_;
  Tensor y_;
};

bool same_channels(const std::vector<float>& a, const std::vector<float>& b, const Shape& shape,
                   const Channels& channels) {
  const std::int64_t map = shape.h() * shape.w();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t channel = static_cast<std::int64_t>(i) / map % shape.c();
    if (channel >= channels.first && channel < channels.end && a[i] != b[i]) return false;
  }
  return true;
}

/// Nothing is read without need: the first and the last channel that is read of each input matter.
void expect_all_needed(const Model& model, const Model::Entry& entry,
                       const std::vector<Channels>& read, const Channels& y) {
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i].count() == 0) continue;
    for (const Channels& kept :
         {Channels{read[i].first + 1, read[i].end}, Channels{read[i].first, read[i].end - 1}}) {
      BoundHere layer(model, entry);
      const std::vector<float> before = layer.forward();
      layer.spoil_others(i, kept);
      EXPECT_FALSE(same_channels(before, layer.forward(), entry.shape, y))
          << entry.name << " does not read all of input " << i;
    }
  }
}

TEST(ChannelReads, AreAllThatChannelsDependOn) {
  const Model model = test::all_kinds();
  std::set<std::string> kinds;
  for (const Model::Entry& entry : model.nodes()) {
    if (!entry.layer) continue;
    const std::int64_t channels = entry.shape.c();
    const std::vector<Shape> x = model.input_shapes(entry);
    // Halves, which also are whole groups, and a run in the middle of the second half.
    for (const Channels& y : {Channels{0, channels / 2}, Channels{channels / 2, channels},
                              Channels{channels / 2 + 1, channels / 2 + 2}}) {
      const auto read = entry.layer->reads(x, y);
      if (!read) continue;
      kinds.insert(entry.layer->type());
      ASSERT_EQ(read->size(), x.size());
      BoundHere layer(model, entry);
      const std::vector<float> before = layer.forward();
      for (std::size_t i = 0; i < x.size(); ++i) layer.spoil_others(i, (*read)[i]);
      const std::vector<float> after = layer.forward();
      EXPECT_TRUE(same_channels(before, after, entry.shape, y)) << entry.name << " " << y.first;
      expect_all_needed(model, entry, *read, y);
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"add", "avg pool", "batch norm", "concat", "conv",
                                          "dropout", "linear", "lrn", "max pool", "pad channels",
                                          "relu", "sigmoid"}));
}

TEST(ChannelReads, AreNotThereForLosses) {
  const Model model = test::all_kinds();
  for (const Model::Entry& entry : model.nodes()) {
    if (!entry.layer || !entry.layer->loss_kind()) continue;
    EXPECT_FALSE(entry.layer->reads(model.input_shapes(entry), {0, 1})) << entry.name;
  }
}

}  // namespace
}  // namespace duplex
