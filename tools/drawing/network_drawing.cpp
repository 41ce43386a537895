#include "tools/drawing/network_drawing.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "tools/drawing/layout.h"
#include "tools/text/escape.h"
#include "tools/text/layer_table.h"

namespace duplex::tools {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

bool in_block(const Model::Entry& entry) {
  return entry.block != entry.name;
}

/// The layer's name without its block's.
std::string short_name(const Model::Entry& entry) {
  return in_block(entry) && entry.name.size() > entry.block.size() + 1
             ? entry.name.substr(entry.block.size() + 1)
             : entry.name;
}

/// "conv 3x3/1, 28x28x128"
std::string description(const Model& model, const Model::Entry& entry) {
  if (!entry.layer) return map_size(entry.shape);
  const std::string geometry = entry.layer->geometry(model.input_shapes(entry));
  return entry.layer->type() + (geometry.empty() ? "" : " " + geometry) + ", " +
         map_size(entry.shape);
}

/// The colour of a layer's frame: a variable of the report's pages, and the colour elsewhere.
std::string colour(const Model::Entry& entry) {
  if (!entry.layer) return "var(--c5,#4a4f57)";
  const std::string type = entry.layer->type();
  if (type == "conv" || type == "linear") return "var(--c0,#0072b2)";
  if (type == "max pool" || type == "avg pool") return "var(--c1,#d55e00)";
  if (type == "concat" || type == "add") return "var(--c2,#009e73)";
  if (entry.layer->loss_kind()) return "var(--c3,#b0559a)";
  return "var(--c4,#7a6a00)";
}

/// The colour of a rank, so that neighbours differ.
std::string rank_colour(int rank) {
  return "hsl(" + std::to_string(rank * 137 % 360) + ",65%,50%)";
}

std::string rectangle(double x, double y, double width, double height, const std::string& style) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
         "\" height=\"" + number(height) + "\" style=\"" + style + "\"/>";
}

/// Bands in the colours of the ranks, side by side, as wide as their parts.
std::string bands(const Point& top, const std::vector<double>& parts) {
  std::string text;
  double left = top.x - Layout::width / 2;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const double width = parts[rank] * Layout::width;
    if (width > 0.0)
      text += rectangle(left, top.y, width, Layout::height,
                        "fill:" + rank_colour(static_cast<int>(rank)) + ";fill-opacity:0.35");
    left += width;
  }
  return text;
}

std::string small_text(double x, double y, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) +
         "\" style=\"fill:var(--ink,#1b1f24);font:10px sans-serif\">" + escape(text) + "</text>\n";
}

/// The ranks' colours, in rows that are as wide as the drawing.
class Legend {
 public:
  Legend(int ranks, const Layout& layout)
      : ranks_(ranks),
        top_(layout.drawing_height),
        columns_(std::max(1, static_cast<int>((layout.drawing_width - Layout::margin) / pitch))) {}

  double height() const { return ranks_ == 0 ? 0.0 : row_of(ranks_ - 1) + row + 6.0; }
  std::string text() const {
    std::string text;
    for (int rank = 0; rank < ranks_; ++rank) {
      const double x = Layout::margin + rank % columns_ * pitch, y = top_ + row_of(rank);
      text += rectangle(x, y, 11, 11, "fill:" + rank_colour(rank) + ";fill-opacity:0.6") +
              small_text(x + 15, y + 9, "rank " + std::to_string(rank));
    }
    return text;
  }

 private:
  static constexpr double pitch = 62.0, row = 17.0;
  double row_of(int rank) const {
    const int number = rank / columns_;
    return row * number;
  }

  int ranks_;
  double top_;
  int columns_;
};

std::string box(const Model& model, std::size_t node, const Point& top, const Overlay& overlay) {
  const Model::Entry& entry = model.nodes()[node];
  const std::string note = overlay.ranks > 0 ? overlay.notes[node] : "";
  const std::string parts = overlay.ranks > 0 ? bands(top, overlay.parts[node]) : "";
  const double left = top.x - Layout::width / 2;
  const auto line = [&](double y, int size, const std::string& text) {
    return "<text x=\"" + number(top.x) + "\" y=\"" + number(top.y + y) +
           "\" text-anchor=\"middle\" style=\"fill:var(--ink,#1b1f24);font:" +
           std::to_string(size) + "px sans-serif\">" + escape(text) + "</text>\n";
  };
  return "<g><title>" +
         escape(entry.name + ": " + description(model, entry) + (note.empty() ? "" : "; " + note)) +
         "</title><rect x=\"" + number(left) + "\" y=\"" + number(top.y) + "\" width=\"" +
         number(Layout::width) + "\" height=\"" + number(Layout::height) +
         "\" rx=\"5\" style=\"fill:var(--shade,#f3f5f8);stroke:" + colour(entry) +
         ";stroke-width:1.5\"" + (entry.training_only ? " stroke-dasharray=\"5 3\"" : "") + "/>" +
         parts + "\n" + line(15, 12, short_name(entry)) + line(29, 10, description(model, entry)) +
         "</g>\n";
}

/// `weight`: from 0, as usual, to 1.
std::string curve(const Layout::Edge& edge, double weight) {
  std::string path = "M" + number(edge.points[0].x) + " " + number(edge.points[0].y);
  for (std::size_t i = 1; i < edge.points.size(); ++i) {
    const Point &a = edge.points[i - 1], &b = edge.points[i];
    const double middle = (a.y + b.y) / 2;
    path += a.x == b.x ? "L"
                       : "C" + number(a.x) + " " + number(middle) + " " + number(b.x) + " " +
                             number(middle) + " ";
    path += number(b.x) + " " + number(b.y);
  }
  // All edges end downwards. The head is no marker, whose name several drawings in a page would
  // have in common.
  path += "m-3 -5l3 5l3 -5";
  return "<path d=\"" + path + "\" style=\"fill:none;stroke:var(--faint,#667080);stroke-width:" +
         number(1.2 + 10.0 * weight) + (weight > 0.0 ? ";stroke-opacity:0.6" : "") + "\"/>\n";
}

/// A frame around the layers of each block, with its name.
std::string frames(const Model& model, const Layout& layout) {
  struct Frame {
    double left = 1e9, top = 1e9, right = 0.0, bottom = 0.0;
    void add(double x, double y, double half) {
      left = std::min(left, x - half);
      right = std::max(right, x + half);
      top = std::min(top, y);
      bottom = std::max(bottom, y);
    }
  };
  std::map<std::string, Frame> all;
  for (std::size_t i = 0; i < layout.tops.size(); ++i) {
    const Model::Entry& entry = model.nodes()[i];
    if (!in_block(entry)) continue;
    const Point& top = layout.tops[i];
    all[entry.block].add(top.x, top.y, Layout::width / 2);
    all[entry.block].add(top.x, top.y + Layout::height, Layout::width / 2);
  }
  for (const Layout::Edge& edge : layout.edges)
    if (const auto frame = all.find(model.entry(edge.to).block);
        frame != all.end() && model.entry(edge.from).block == frame->first)
      for (const Point& point : edge.points) frame->second.add(point.x, point.y, 0.0);
  constexpr double around = 7.0;
  std::string text;
  for (const auto& [name, frame] : all) {
    const std::string x = number(frame.right + around + 5);
    const std::string y = number((frame.top + frame.bottom) / 2);
    text += "<rect x=\"" + number(frame.left - around) + "\" y=\"" + number(frame.top - around) +
            "\" width=\"" + number(frame.right - frame.left + 2 * around) + "\" height=\"" +
            number(frame.bottom - frame.top + 2 * around) +
            "\" rx=\"8\" style=\"fill:none;stroke:var(--line,#d5dae1)\"/>\n<text x=\"" + x +
            "\" y=\"" + y + "\" transform=\"rotate(90 " + x + " " + y +
            ")\" text-anchor=\"middle\" style=\"fill:var(--faint,#667080);font:10px sans-serif\">" +
            escape(name) + "</text>\n";
  }
  return text;
}

/// A string of Graphviz.
std::string in_quotes(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + "\"";
}

}  // namespace

void scale_weights(const Model& model, Overlay& overlay) {
  for (std::size_t node = 1; node < model.nodes().size(); ++node) {
    if (!overlay.parts[node].empty()) continue;
    for (const Model::Node input : model.nodes()[node].inputs)
      overlay.weights[node] += overlay.weights[static_cast<std::size_t>(input)];
  }
  const double most = *std::max_element(overlay.weights.begin(), overlay.weights.end());
  if (most > 0.0)
    for (double& weight : overlay.weights) weight /= most;
}

std::string svg_of(const Model& model, const Overlay& overlay) {
  const Layout layout = layout_of(model);
  const Legend legend(overlay.ranks, layout);
  const std::string width = number(layout.drawing_width);
  const std::string height = number(layout.drawing_height + legend.height());
  // A page may have its pictures fill its width, in which a small network would be huge.
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width + " " + height +
      "\" width=\"" + width + "\" height=\"" + height + "\" style=\"max-width:" + width +
      "px\" role=\"img\" aria-label=\"" + escape(model.title()) + "\">\n<title>" +
      escape(model.title()) +
      "</title>\n<rect width=\"100%\" height=\"100%\" style=\"fill:var(--paper,#fff)\"/>\n";
  text += frames(model, layout);
  for (const Layout::Edge& edge : layout.edges)
    text +=
        curve(edge, overlay.ranks > 0 ? overlay.weights[static_cast<std::size_t>(edge.from)] : 0.0);
  for (std::size_t i = 0; i < layout.tops.size(); ++i)
    text += box(model, i, layout.tops[i], overlay);
  return text + legend.text() + "</svg>\n";
}

std::string dot_of(const Model& model) {
  std::string text = "digraph " + in_quotes(model.title()) +
                     " {\n  node [shape=box, style=rounded, fontname=sans]\n";
  std::string block;
  const auto end_block = [&] {
    if (!block.empty()) text += "  }\n";
    block.clear();
  };
  for (const Model::Entry& entry : model.nodes()) {
    const std::string own = in_block(entry) ? entry.block : "";
    if (own != block) {
      end_block();
      block = own;
      if (!block.empty())
        text += "  subgraph " + in_quotes("cluster_" + block) +
                " {\n    label=" + in_quotes(block) + "\n";
    }
    // In a label, Graphviz reads \n as the end of a line.
    std::string label = in_quotes(short_name(entry));
    label.pop_back();
    label += "\\n" + in_quotes(description(model, entry)).substr(1);
    text += std::string(block.empty() ? "  " : "    ") + in_quotes(entry.name) +
            " [label=" + label + (entry.training_only ? ", style=\"rounded,dashed\"" : "") + "]\n";
  }
  end_block();
  for (const Model::Entry& entry : model.nodes())
    for (const Model::Node input : entry.inputs)
      text += "  " + in_quotes(model.entry(input).name) + " -> " + in_quotes(entry.name) + "\n";
  return text + "}\n";
}

}  // namespace duplex::tools
