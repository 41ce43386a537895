// Tests the plan of a training step's memory on graphs of all kinds, following it write by write.
#include "layers/plan/backward_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/random.h"
#include "tests/layers/plan_simulation.h"

namespace duplex {
namespace {

using test::PlanSimulation;

/// Stands for a layer of which only the traits matter.
class Traits : public Layer {
 public:
  Traits(LayerTraits traits, bool has_parameter, float loss_weight = 0.0F)
      : traits_(traits), has_parameter_(has_parameter), loss_weight_(loss_weight) {}

  std::string type() const override { return "traits"; }
  LayerTraits traits() const override { return traits_; }
  Shape output(const std::vector<Shape>& x) const override { return x[0]; }
  std::vector<ParameterSpec> parameters(const std::vector<Shape>&) const override {
    if (!has_parameter_) return {};
    return {{"weight", {1}, {}, true}};
  }
  float loss_weight() const override { return loss_weight_; }
  std::unique_ptr<BoundLayer> bind(Device&, const std::string&, const std::vector<TensorDesc>&,
                                   const BindContext&) const override {
    throw Error("traits: never bound");
  }

 private:
  LayerTraits traits_;
  bool has_parameter_;
  float loss_weight_;
};

LayerTraits reads_x(bool relu) {
  LayerTraits traits;
  traits.backward_reads_x = true;
  traits.relu = relu;
  return traits;
}
LayerTraits passes(bool relu) {
  LayerTraits traits;
  traits.gradient_passes = true;
  traits.relu = relu;
  return traits;
}
LayerTraits in_place(bool reads_y) {
  LayerTraits traits;
  traits.gradient_in_place = true;
  traits.backward_reads_y = reads_y;
  return traits;
}
LayerTraits concatenates() {
  LayerTraits traits;
  traits.backward_reads_y = true;
  traits.masks_slices = true;
  return traits;
}
LayerTraits normalises() {
  LayerTraits traits;
  traits.backward_reads_x = true;
  traits.writes_every_dx = true;
  return traits;
}

class Blocked : public Layout {};

/// Builds a graph, in which each node has one of three layouts.
class Graph {
 public:
  Graph() : layouts_{nullptr, std::make_shared<Blocked>(), std::make_shared<Blocked>()} {
    lay_out(0);
  }

  Model::Node add(const LayerTraits& traits, std::vector<Model::Node> inputs, int layout = 0,
                  bool has_parameter = false) {
    return put(std::make_shared<Traits>(traits, has_parameter), std::move(inputs), layout);
  }
  Model::Node weighted(bool relu, Model::Node x, int layout = 0) {
    return add(reads_x(relu), {x}, layout, true);
  }
  Model::Node loss(Model::Node x) {
    LayerTraits traits;
    traits.backward_reads_y = true;
    return put(std::make_shared<Traits>(traits, false, 1.0F), {x}, 0);
  }

  std::string run(bool training = true, bool joins_sums = false) const {
    const BackwardPlan plan =
        plan_backward(model_, y_, training, joins_sums ? joined() : std::vector<int>{});
    return PlanSimulation(model_, plan).run(training);
  }
  /// Normalisations join sums with what is laid out alike.
  std::vector<int> joined() const {
    return joined_sums(model_, [this](Model::Node node, Model::Node other) {
      const auto& layer = model_.entry(node).layer;
      return layer && layer->traits().writes_every_dx &&
             same_storage(y_[static_cast<std::size_t>(node)], y_[static_cast<std::size_t>(other)]);
    });
  }
  std::size_t arena_bytes(bool training) const {
    return plan_memory(plan_backward(model_, y_, training).blocks).bytes;
  }
  BackwardPlan plan() const { return plan_backward(model_, y_, true); }
  Model::Node last() const { return model_.output(); }

 private:
  Model::Node put(std::shared_ptr<Traits> layer, std::vector<Model::Node> inputs, int layout) {
    lay_out(layout);
    return model_.layer("n" + std::to_string(y_.size() - 1), std::move(layer), std::move(inputs));
  }
  void lay_out(int layout) {
    const std::size_t bytes = 5000 * static_cast<std::size_t>(layout + 1);
    y_.push_back({Shape{1, 1, 25, 50}, layouts_[static_cast<std::size_t>(layout)], bytes});
  }

  Model model_{"Graph", {1, 1, 25, 50}};
  std::vector<std::shared_ptr<const Layout>> layouts_;
  std::vector<TensorDesc> y_;
};

TEST(BackwardPlan, ResidualBlocksShareTheGradientOfTheirSum) {
  Graph graph;
  const auto x = graph.weighted(true, 0);
  const auto inner = graph.weighted(true, x);
  const auto y = graph.weighted(false, inner);
  const auto sum = graph.add(passes(true), {y, x});
  graph.loss(graph.weighted(false, sum));
  EXPECT_EQ(graph.run(), "");
  const BackwardPlan plan = graph.plan();
  const auto& add = plan.nodes[static_cast<std::size_t>(sum)];
  EXPECT_EQ(add.dx[0], add.dy);
  EXPECT_EQ(add.dx[1], add.dy);
  EXPECT_FALSE(add.convert);
}

TEST(BackwardPlan, AnAdditionOfUnlikeLayoutsConverts) {
  Graph graph;
  const auto a = graph.weighted(false, 0, 1);
  const auto b = graph.weighted(false, 0, 2);
  const auto sum = graph.add(passes(true), {a, b}, 1);
  graph.loss(graph.weighted(false, sum));
  EXPECT_EQ(graph.run(), "");
  const BackwardPlan plan = graph.plan();
  const auto& add = plan.nodes[static_cast<std::size_t>(sum)];
  EXPECT_EQ(add.dx[0], add.dy);
  EXPECT_NE(add.dx[1], add.dy);
  EXPECT_TRUE(add.convert);
}

/// On the way back, the next micro-batch could compute the sum before this one normalises.
TEST(BackwardPlan, NothingIsJoinedAcrossAGradientThatIsAwaited) {
  for (const bool awaited : {false, true}) {
    Graph graph;
    const auto x = graph.weighted(true, 0);
    const auto a = graph.add(normalises(), {graph.weighted(false, x)}, 0, true);
    LayerTraits sent;
    sent.takes_gradient = awaited;
    const auto b = graph.weighted(true, x);
    graph.add(sent, {b});
    const auto sum = graph.add(passes(true), {a, graph.weighted(false, b)});
    graph.loss(graph.weighted(false, sum));
    EXPECT_EQ(graph.joined()[static_cast<std::size_t>(a)], awaited ? BackwardPlan::none : sum);
  }
}

TEST(BackwardPlan, ANormalisationThatOnlyASumReadsJoinsIt) {
  Graph graph;
  const auto x = graph.weighted(true, 0);
  const auto a = graph.add(normalises(), {graph.weighted(false, x)}, 0, true);
  const auto b = graph.add(normalises(), {graph.weighted(false, x)}, 0, true);
  const auto sum = graph.add(passes(true), {a, b});
  const auto c = graph.add(normalises(), {graph.weighted(false, sum)}, 0, true);
  const auto other = graph.add(passes(true), {sum, c});
  const auto read_twice = graph.add(normalises(), {graph.weighted(false, other)}, 0, true);
  graph.loss(graph.add(concatenates(), {graph.add(passes(true), {read_twice, other}), read_twice}));
  std::vector<int> expected(graph.joined().size(), BackwardPlan::none);
  expected[static_cast<std::size_t>(a)] = sum;  // Not b: a sum is computed with one of its inputs.
  expected[static_cast<std::size_t>(c)] = other;
  EXPECT_EQ(graph.joined(), expected);
  EXPECT_EQ(graph.run(true, true), "");
  EXPECT_EQ(graph.run(false, true), "");
}

TEST(BackwardPlan, ANodeAddedToItselfGetsItsGradientTwice) {
  Graph graph;
  const auto x = graph.weighted(true, 0);
  graph.loss(graph.add(passes(false), {x, x}));
  EXPECT_EQ(graph.run(), "");
  EXPECT_EQ(graph.plan().nodes[static_cast<std::size_t>(x)].contributions.size(), 2U);
}

TEST(BackwardPlan, AGradientIsOverwrittenInPlaceUnlessAnotherNeedsIt) {
  Graph graph;
  const auto b = graph.weighted(false, 0);
  const auto shared = graph.add(in_place(false), {graph.weighted(false, 0)});
  const auto sum = graph.add(passes(false), {b, shared});  // b reads its gradient after `shared`.
  const auto alone = graph.add(in_place(false), {sum});
  graph.loss(graph.weighted(false, alone));
  EXPECT_EQ(graph.run(), "");
  const BackwardPlan plan = graph.plan();
  const auto in_place_at = [&](Model::Node node) {
    const auto& at = plan.nodes[static_cast<std::size_t>(node)];
    return at.dx[0] == at.dy;
  };
  EXPECT_FALSE(in_place_at(shared));
  EXPECT_TRUE(in_place_at(alone));
}

TEST(BackwardPlan, SlicesThatTheConcatenationMaskedAreNotMaskedAgain) {
  Graph graph;
  const auto a = graph.weighted(true, 0);
  const auto b = graph.weighted(true, 0);
  graph.loss(graph.weighted(false, graph.add(concatenates(), {a, b})));
  EXPECT_EQ(graph.run(), "");
  EXPECT_FALSE(graph.plan().nodes[static_cast<std::size_t>(a)].sum);
}

TEST(BackwardPlan, ABranchWithoutALossGetsNoGradient) {
  Graph graph;
  const auto x = graph.weighted(true, 0);
  const auto dead = graph.weighted(true, x);
  graph.loss(graph.weighted(false, x));
  EXPECT_EQ(graph.run(), "");
  EXPECT_FALSE(graph.plan().nodes[static_cast<std::size_t>(dead)].runs);
}

TEST(BackwardPlan, InferenceKeepsTwoActivationsOfAChain) {
  Graph graph;
  Model::Node x = 0;
  for (int i = 0; i < 20; ++i) x = graph.weighted(true, x);
  graph.loss(x);
  EXPECT_EQ(graph.run(false), "");
  EXPECT_EQ(graph.arena_bytes(false), 2 * 2 * MemoryPlan::alignment);  // A block has 5000 bytes.
  EXPECT_GE(graph.arena_bytes(true), 20 * 2 * MemoryPlan::alignment);
}

/// No network has such graphs: every kind of layer comes behind every other, in random layouts.
TEST(BackwardPlan, RandomGraphsReadWhatWasWritten) {
  for (int trial = 0; trial < 3000; ++trial) {
    const RandomStream random(3, static_cast<std::uint64_t>(trial));
    std::uint64_t draw = 0;
    const auto below = [&](int bound) {
      return static_cast<int>(random.below(draw++, static_cast<std::uint32_t>(bound)));
    };
    Graph graph;
    const int count = 1 + below(30);
    for (int i = 0; i < count; ++i) {
      const auto input = [&] {  // Picks mostly one of the last few.
        const int last = graph.last();
        return below(4) == 0 ? below(last + 1) : std::max(last - below(4), 0);
      };
      const int layout = below(3) == 0 ? below(3) : 0;
      switch (below(9)) {
        case 0:
        case 1:
          graph.weighted(below(2) == 0, input(), layout);
          break;
        case 2:
          graph.add(LayerTraits{}, {input()}, layout);
          break;
        case 3:
          graph.add(passes(below(2) == 0), {input(), input()}, layout);
          break;
        case 4:
          graph.add(in_place(below(2) == 0), {input()}, layout);
          break;
        case 5: {
          std::vector<Model::Node> inputs;
          for (int n = 1 + below(4); n > 0; --n) inputs.push_back(input());
          graph.add(concatenates(), inputs, layout);
          break;
        }
        case 6:
          graph.add(normalises(), {input()}, layout, true);
          break;
        case 7:
          graph.add(reads_x(false), {input()}, layout);
          break;
        default: {
          const Model::Node x = input();
          graph.loss(x);
          graph.weighted(true, x, layout);  // Networks read no loss, so x gets another reader.
          break;
        }
      }
    }
    graph.loss(graph.last());
    for (const bool joins : {false, true}) {
      ASSERT_EQ(graph.run(true, joins), "") << "graph " << trial;
      ASSERT_EQ(graph.run(false, joins), "") << "graph " << trial << ", inference";
    }
  }
}

}  // namespace
}  // namespace duplex
