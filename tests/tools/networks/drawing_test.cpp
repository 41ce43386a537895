// The drawing of a network: every layer has a place of its own, below all that it reads.
#include <gtest/gtest.h>

#include <cmath>

#include "models/registry.h"
#include "tools/drawing/layout.h"
#include "tools/drawing/network_drawing.h"

namespace duplex::tools {
namespace {

std::vector<Model> all_models() {
  models::ModelOptions options;
  options.auxiliary = options.zero_padded_shortcuts = true;
  std::vector<Model> all;
  for (const auto& [name, builder] : models::all()) {
    all.push_back(builder({}));
    all.push_back(builder(options));
  }
  return all;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Drawing, EveryLayerStandsAloneBelowWhatItReads) {
  for (const Model& model : all_models()) {
    const Layout layout = layout_of(model);
    ASSERT_EQ(layout.tops.size(), model.nodes().size());
    for (std::size_t i = 0; i < layout.tops.size(); ++i) {
      const Point& own = layout.tops[i];
      EXPECT_GE(own.x - Layout::width / 2, 0.0);
      EXPECT_LE(own.x + Layout::width / 2, layout.drawing_width);
      EXPECT_LE(own.y + Layout::height, layout.drawing_height);
      for (const Model::Node input : model.nodes()[i].inputs)
        EXPECT_GE(own.y, layout.tops[static_cast<std::size_t>(input)].y + Layout::height)
            << model.title() << " " << model.nodes()[i].name;
      for (std::size_t k = 0; k < i; ++k)
        EXPECT_TRUE(std::abs(own.x - layout.tops[k].x) > Layout::width ||
                    std::abs(own.y - layout.tops[k].y) > Layout::height)
            << model.title() << ": " << model.nodes()[i].name << " lies over "
            << model.nodes()[k].name;
    }
  }
}

/// An edge that passes other rows keeps clear of their boxes.
TEST(Drawing, NoEdgePassesThroughALayer) {
  for (const Model& model : all_models()) {
    const Layout layout = layout_of(model);
    for (const Layout::Edge& edge : layout.edges)
      for (std::size_t i = 1; i + 1 < edge.points.size(); ++i)
        for (const Point& top : layout.tops)
          EXPECT_FALSE(edge.points[i].y >= top.y && edge.points[i].y <= top.y + Layout::height &&
                       std::abs(edge.points[i].x - top.x) < Layout::width / 2)
              << model.title() << ", from " << model.entry(edge.from).name;
  }
}

TEST(Drawing, HasEveryLayerAndEdge) {
  for (const Model& model : all_models()) {
    std::size_t edges = 0;
    for (const Model::Entry& entry : model.nodes()) edges += entry.inputs.size();
    const std::string svg = svg_of(model), dot = dot_of(model);
    EXPECT_EQ(count(svg, "<g>"), model.nodes().size());
    EXPECT_EQ(count(svg, "<g>"), count(svg, "</g>"));
    EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
    EXPECT_EQ(count(svg, "<path"), edges);
    EXPECT_EQ(count(dot, " -> "), edges);
    EXPECT_EQ(count(dot, "{"), count(dot, "}"));
    EXPECT_EQ(count(dot, " [label="), model.nodes().size());
  }
}

/// The four branches of an inception module stand side by side (Figure D.2).
TEST(Drawing, BranchesStandSideBySide) {
  models::ModelOptions options;
  const Model model = models::build("googlenet", options);
  const Layout layout = layout_of(model);
  const auto place = [&](const std::string& name) {
    for (std::size_t i = 0; i < layout.tops.size(); ++i)
      if (model.nodes()[i].name == name) return layout.tops[i];
    return Point{};
  };
  const std::string block = "inception_3a/";
  const Point one = place(block + "1x1"), three = place(block + "3x3_reduce"),
              five = place(block + "5x5_reduce"), pool = place(block + "pool");
  EXPECT_EQ(one.y, pool.y);
  EXPECT_LT(one.x, three.x);
  EXPECT_LT(three.x, five.x);
  EXPECT_LT(five.x, pool.x);
  EXPECT_NEAR(place(block + "concat").x, (one.x + pool.x) / 2, 1.0);
  EXPECT_GT(place(block + "concat").y, place(block + "3x3").y);
}

TEST(Drawing, ANameThatIsMarkupStaysText) {
  Model model("<&\"net", {1, 1, 4, 4});
  model.softmax("s\"<", model.linear("\\f", model.input(), 3, false));
  const std::string svg = svg_of(model), dot = dot_of(model);
  EXPECT_EQ(svg.find("<&"), std::string::npos);
  EXPECT_NE(svg.find("&lt;&amp;&quot;net"), std::string::npos);
  EXPECT_NE(dot.find("\"\\\\f\" -> \"s\\\"<\""), std::string::npos) << dot;
}

}  // namespace
}  // namespace duplex::tools
