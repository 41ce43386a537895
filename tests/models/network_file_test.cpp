// Networks as files: every compiled network that is written and read again is the same to the bit,
// and so is every kind of layer; a file that is no network gets one line with its place.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "layers/kinds/normalisation.h"
#include "layers/network.h"
#include "models/file/reader.h"
#include "models/file/writer.h"
#include "models/registry.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

using models::build;
using models::ModelOptions;
using models::file::canonical_text;
using models::file::network_text;
using models::file::read_network;

Model read(const std::string& text, const ModelOptions& options = {}) {
  return read_network(text, "net.txt", options);
}

/// Every network in every form.
std::vector<std::pair<std::string, ModelOptions>> all_forms() {
  ModelOptions auxiliary, padded;
  auxiliary.auxiliary = true;
  padded.zero_padded_shortcuts = true;
  std::vector<std::pair<std::string, ModelOptions>> forms{{"googlenet", auxiliary},
                                                          {"resnet34", padded}};
  for (const auto& [name, builder] : models::all()) forms.emplace_back(name, ModelOptions{});
  return forms;
}

void expect_same(const Model& a, const Model& b) {
  EXPECT_EQ(a.title(), b.title());
  EXPECT_EQ(a.known_as(), b.known_as());
  ASSERT_EQ(a.nodes().size(), b.nodes().size()) << a.title();
  for (std::size_t i = 0; i < a.nodes().size(); ++i) {
    const Model::Entry &x = a.nodes()[i], &y = b.nodes()[i];
    const std::string where = a.title() + ", " + x.name;
    EXPECT_EQ(x.name, y.name) << where;
    EXPECT_EQ(x.block, y.block) << where;
    EXPECT_EQ(x.inputs, y.inputs) << where;
    EXPECT_EQ(x.shape, y.shape) << where;
    EXPECT_EQ(x.training_only, y.training_only) << where;
    if (!x.layer) continue;
    const std::vector<Shape> shapes = a.input_shapes(x);
    EXPECT_EQ(x.layer->type(), y.layer->type()) << where;
    EXPECT_EQ(x.layer->geometry(shapes), y.layer->geometry(shapes)) << where;
    EXPECT_EQ(x.layer->macs(shapes), y.layer->macs(shapes)) << where;
    EXPECT_EQ(x.layer->loss_weight(), y.layer->loss_weight()) << where;
    EXPECT_EQ(x.layer->traits().relu, y.layer->traits().relu) << where;
    const std::vector<ParameterSpec> p = a.parameters(x), q = b.parameters(y);
    ASSERT_EQ(p.size(), q.size()) << where;
    for (std::size_t k = 0; k < p.size(); ++k) {
      EXPECT_EQ(p[k].name, q[k].name);
      EXPECT_EQ(p[k].shape, q[k].shape) << p[k].name;
      EXPECT_EQ(p[k].initial.value, q[k].initial.value) << p[k].name;
      EXPECT_EQ(p[k].initial.bound, q[k].initial.bound) << p[k].name;
      EXPECT_EQ(p[k].trained, q[k].trained) << p[k].name;
    }
  }
  EXPECT_EQ(a.macs(), b.macs());
}

/// The losses of two batches, and the bits of all weights after an update by the gradients.
std::string trained(const Model& model) {
  const auto device = make_device("cpu", 1);
  constexpr std::int64_t batch = 2;
  Network network(model, *device, batch);
  network.initialise(7);
  const std::size_t pixels = static_cast<std::size_t>(model.entry(0).shape.elements() * batch);
  std::vector<float> images(pixels);
  RandomStream(3, stream_of("images")).fill_uniform(images.data(), pixels);
  const std::vector<std::int32_t> labels{1, 0};
  std::string bits;
  ForwardContext context;
  context.seed = 7;
  context.labels = labels.data();
  network.forward(images.data(), context);
  const double loss = network.loss();
  bits.append(reinterpret_cast<const char*>(&loss), sizeof loss);
  network.backward();
  for (const Parameter& parameter : network.parameters())
    for (const Tensor& tensor : {parameter.weights, parameter.gradient}) {
      std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()));
      device->download(values.data(), tensor);
      bits.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
  return bits;
}

TEST(NetworkFile, EveryNetworkComesBackTheSame) {
  for (const auto& [name, options] : all_forms()) {
    const Model model = build(name, options);
    const std::string text = network_text(model);
    expect_same(model, read(text));
    EXPECT_EQ(network_text(read(text)), text) << name;
  }
}

TEST(NetworkFile, EveryNetworkTakesOtherClassesAndInputs) {
  for (const auto& [name, options] : all_forms()) {
    const std::string text = network_text(build(name, options));
    ModelOptions other = options, asked;
    other.classes = asked.classes = 257;
    other.channels = asked.channels = 2;
    other.input = asked.input = name == "lenet" ? 40 : 240;
    expect_same(build(name, other), read(text, asked));
  }
}

TEST(NetworkFile, LossesAndGradientsAreTheSameToTheBit) {
  for (const auto& [name, options] : all_forms()) {
    // Their layers are among the others'.
    if (name == "vgg16e" || name == "alexnet") continue;
    const bool has_forms = name == "googlenet" || name == "resnet34";
    if (has_forms && !options.auxiliary && !options.zero_padded_shortcuts) continue;
    ModelOptions small = options, asked;
    small.classes = asked.classes = 5;
    small.input = asked.input = name == "lenet" ? 28 : options.auxiliary ? 65 : 33;
    const std::string text = network_text(build(name, options));
    const std::string compiled = trained(build(name, small));
    EXPECT_TRUE(compiled == trained(read(text, asked))) << name;
  }
}

/// The text that docs/network-files.md shows.
const char* const lenet_text =
    "network LeNet\n"
    "input   28x28x1\n"
    "classes 10\n"
    "\n"
    "conv1    conv 5x5/1 valid, 20 filters, relu\n"
    "pool1    max pool 2x2/2 valid\n"
    "conv2    conv 5x5/1 valid, 50 filters, relu\n"
    "pool2    max pool 2x2/2 valid\n"
    "fc1      linear 500 outputs, relu\n"
    "fc2      linear classes outputs\n"
    "softmax  softmax\n"
    "end\n";

TEST(NetworkFile, LeNetIsATableOfItsLayers) {
  EXPECT_EQ(network_text(build("lenet", {})), lenet_text);
}

TEST(NetworkFile, LikeLayersAndBlocksBecomeRepeats) {
  const std::string vgg = network_text(build("vgg16e", {}));
  EXPECT_NE(vgg.find("repeat i = 1 to 4\n  conv3_{i}  conv 3x3/1 same, 256 filters, relu\nend\n"),
            std::string::npos)
      << vgg;
  const std::string resnet = network_text(build("resnet34", {}));
  EXPECT_NE(resnet.find("repeat i = 2 to 6\n  block residual3_{i}\n"), std::string::npos) << resnet;
  EXPECT_NE(resnet.find("    add    add relu from bn2, start\n"), std::string::npos) << resnet;
  EXPECT_LT(std::count(resnet.begin(), resnet.end(), '\n'), 90);
}

TEST(NetworkFile, EveryKindOfLayerComesBackWithItsNumbers) {
  Model net("All kinds", {1, 3, 20, 20});
  Model::Node x = net.conv("a", net.input(), 8, padded(3, 2, 1), {1, false, false});
  BatchNormSpec norm;
  norm.epsilon = 1e-3F;
  norm.momentum = 1.0F / 3.0F;
  norm.relu = true;
  x = net.layer("b", std::make_shared<BatchNormLayer>(norm), {x});
  x = net.lrn("c", x, {3, 0.1F, 2.0F / 3.0F, 1.1F});
  const auto sigmoid = net.sigmoid("d", x);
  net.block("e");
  x = net.relu("d", x);  // In its block it hides the sigmoid of this name.
  const auto wide = net.pad_channels("pad", x, 12);
  const auto both = net.concat("f", {sigmoid, x, wide});
  net.block("");
  x = net.dropout("g", both, 1.0F / 3.0F);
  net.training_only(true);
  const auto helper = net.linear("h", x, 4, false);
  net.squared_error("i", helper, 0.3F);
  net.training_only(false);
  const auto left = net.average_pool("j", x, same(2, 2));
  const auto right = net.max_pool("k", x, valid(2, 2));
  x = net.add("l", left, right, true);
  x = net.conv("m", x, 4, whole_map(), {4, true, true});
  net.squared_error("n", x);
  const std::string text = network_text(net);
  expect_same(net, read(text));
  EXPECT_EQ(network_text(read(text)), text);
  EXPECT_NE(text.find("from /d, d, pad"), std::string::npos) << text;
}

TEST(NetworkFile, ReadsWhatAStudentWrites) {
  const Model net = read(R"(# A dense block: every convolution reads all that stand above it.
network Dense net   # by hand
input 16x16x3
classes 10

cat0  conv 3x3 same 8 filters
repeat i = 1 to 3
  conv{i}  conv 3x3 same, 4 filters, relu from cat{i-1}
  cat{i}   concat from cat{i-1}, conv{i}
end
block helper training only from cat2
  pool  avg pool whole map
  fc    linear classes outputs
  loss  softmax weight 0.3
end
repeat stage = 1 to 2
  repeat i = 1 to 2
    block part{stage}_{i} from cat{stage}
      conv  conv 3x3/2 pad 1, 6 filters, no bias
      bn    batch norm relu
    end
  end
  sum{stage}  add from part{stage}_1, part{stage}_2/bn
end
down     max pool 2x2/2 valid from cat3
both     concat from sum1, sum2, part1_1/conv, down
pool     avg pool whole map
fc       linear classes outputs
softmax  softmax
end
)");
  EXPECT_EQ(net.title(), "Dense net");
  const auto shape = [&](const std::string& name) {
    for (const Model::Entry& entry : net.nodes())
      if (entry.name == name) return entry.shape.str() + (entry.training_only ? " training" : "");
    return "no " + name;
  };
  EXPECT_EQ(shape("cat3"), "1x20x16x16");
  EXPECT_EQ(shape("helper/loss"), "1x10 training");
  EXPECT_EQ(shape("part2_1/conv"), "1x6x8x8");
  EXPECT_EQ(shape("both"), "1x38x8x8");
  EXPECT_EQ(shape("softmax"), "1x10");
  expect_same(net, read(network_text(net)));
  // 3x3x3x8 + 8; 3x3x8x4 + 4, 3x3x12x4 + 4, 3x3x16x4 + 4; helper 16x10 + 10; the parts read 12 and
  // 16 channels, and each norm has 12; fc 38x10 + 10.
  EXPECT_EQ(net.trained_parameters(),
            224 + 292 + 436 + 580 + 170 + 2 * 54 * 12 + 2 * 54 * 16 + 4 * 12 + 390);
}

TEST(NetworkFile, NumbersAreWrittenAsPeopleWriteThem) {
  Model net("Numbers", {1, 3, 8, 8});
  Model::Node x = net.dropout("a", net.input(), 0.4F);
  x = net.lrn("b", x, {5, 1e-4F, 0.75F, 100.0F});
  net.softmax("d", net.linear("c", x, 3, false), 20.0F);
  const std::string text = network_text(net);
  for (const char* part : {"dropout 40%\n", "alpha 0.0001, beta 0.75, k 100\n", "weight 20\n"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

/// Repeats within repeats are not written again as such, so that the text is too long for a file.
TEST(NetworkFile, OneThatIsTooLongToBeWrittenCanBeCompared) {
  const auto network = [&](const char* last) {
    return read("network Long\ninput 2x2x1\nclasses 2\nrepeat i = 1 to 40\nrepeat k = 1 to 100\n" +
                std::string(40, 'a') + "{k}_{i} relu\nend\nend\n" + last +
                "\nfc linear classes outputs\nloss softmax\nend\n");
  };
  const Model model = network("s sigmoid");
  EXPECT_THROW(network_text(model), Error);
  EXPECT_EQ(canonical_text(model), canonical_text(network("s   sigmoid  # The same.")));
  EXPECT_NE(canonical_text(model), canonical_text(network("s relu")));
}

TEST(NetworkFile, ANameIsAFileWhereItLooksLikeOne) {
  EXPECT_FALSE(models::names_file("lenet"));
  EXPECT_FALSE(models::names_file("lennet"));
  EXPECT_TRUE(models::names_file("./lennet"));
  EXPECT_TRUE(models::names_file("lenet.net"));
  ModelOptions options;
  options.file = lenet_text;
  expect_same(build("nowhere/lenet.net", options), build("lenet", {}));
  try {
    build("nowhere/lenet.net", {});
    ADD_FAILURE() << "it was built";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    EXPECT_STREQ(error.what(),
                 "network file nowhere/lenet.net: cannot be read: No such file or directory");
  }
}

TEST(NetworkFile, NothingButARegularFileIsOpened) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe.net";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder.path()}) {
    try {
      build(path, {});
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::usage);
      EXPECT_EQ(error.what(), "network file " + path + ": cannot be read: it is no regular file");
    }
  }
}

TEST(NetworkFile, ALayerOfOnesOwnIsNotWritten) {
  class Other : public Layer {
   public:
    std::string type() const override { return "other"; }
    Shape output(const std::vector<Shape>& x) const override { return x[0]; }
    std::unique_ptr<BoundLayer> bind(Device&, const std::string&, const std::vector<TensorDesc>&,
                                     const BindContext&) const override {
      return nullptr;
    }
  };
  Model net("Own", {1, 1, 4, 4});
  Model::Node x = net.layer("other", std::make_shared<Other>(), {net.input()});
  x = net.linear("fc", x, 3, false);
  net.softmax("softmax", x);
  EXPECT_THROW(network_text(net), Error);
}

}  // namespace
}  // namespace duplex
