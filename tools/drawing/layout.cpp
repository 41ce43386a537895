#include "tools/drawing/layout.h"

#include <algorithm>
#include <map>

namespace duplex::tools {
namespace {

/// A place in a row: a layer's, or that of an edge which passes the row.
struct Place {
  std::size_t row = 0;
  double width = Layout::width;
  bool beside = false;  ///< It belongs to a layer that training alone runs.
  double x = 0.0;       ///< Its middle.
  std::vector<std::size_t> above{}, below{};
};

constexpr double gap = 24.0, lane = 12.0;
/// Beyond so many places edges go straight, since nobody could look at them all.
constexpr std::size_t most_places = 20000;

class Placing {
 public:
  explicit Placing(const Model& model) : model_(model) {
    for (const Model::Entry& entry : model.nodes()) {
      Place place;
      place.beside = entry.training_only;
      for (const Model::Node input : entry.inputs)
        place.row = std::max(place.row, places_[index(input)].row + 1);
      places_.push_back(place);
    }
    for (std::size_t node = 0; node < model.nodes().size(); ++node)
      for (const Model::Node input : model.nodes()[node].inputs) connect(index(input), node);
    rows_.resize(1);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].row >= rows_.size()) rows_.resize(places_[i].row + 1);
      if (!places_[i].beside) rows_[places_[i].row].push_back(i);
    }
  }

  Layout layout() {
    constexpr int sweeps = 6;
    for (std::vector<std::size_t>& row : rows_) spread(row, {});
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (std::vector<std::size_t>& row : rows_) move(row, &Place::above, sweep < 2);
      for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) move(*row, &Place::below, false);
    }
    for (std::vector<std::size_t>& row : rows_) move(row, &Place::above, false);
    place_beside();
    return result();
  }

 private:
  static std::size_t index(Model::Node node) { return static_cast<std::size_t>(node); }

  /// Joins two layers by places in all rows between them.
  void connect(std::size_t from, std::size_t to) {
    std::vector<std::size_t>& path = paths_[{from, to}];
    path.push_back(from);
    for (std::size_t row = places_[from].row + 1;
         row < places_[to].row && places_.size() < most_places; ++row) {
      Place passing;
      passing.row = row;
      passing.width = lane;
      passing.beside = places_[to].beside;
      path.push_back(places_.size());
      places_.push_back(passing);
    }
    path.push_back(to);
    for (std::size_t i = 1; i < path.size(); ++i) {
      places_[path[i - 1]].below.push_back(path[i]);
      places_[path[i]].above.push_back(path[i - 1]);
    }
  }

  /// Moves the places of a row to the mean of their neighbours in the row above or below, as far as
  /// they leave each other room; with `sort`, also past each other.
  void move(std::vector<std::size_t>& row, std::vector<std::size_t> Place::*neighbours, bool sort) {
    std::map<std::size_t, double> wanted;
    for (const std::size_t i : row) {
      double sum = 0.0;
      std::size_t count = 0;
      for (const std::size_t other : places_[i].*neighbours)
        if (!places_[other].beside) sum += places_[other].x, ++count;
      wanted[i] = count > 0 ? sum / static_cast<double>(count) : places_[i].x;
    }
    if (sort)
      std::stable_sort(row.begin(), row.end(),
                       [&](std::size_t a, std::size_t b) { return wanted.at(a) < wanted.at(b); });
    spread(row, wanted);
  }

  /// Places a row in its order as near to where its places want to be as their widths allow: those
  /// that would overlap become a group around the mean of what its members want.
  void spread(const std::vector<std::size_t>& row, const std::map<std::size_t, double>& wanted) {
    struct Group {
      double sum = 0.0;  ///< Members' wishes for the group's first, added up.
      std::size_t count = 0;
      double mean() const { return sum / static_cast<double>(count); }
    };
    std::vector<Group> groups;
    std::vector<double> offsets;
    double offset = 0.0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) offset += (places_[row[i - 1]].width + places_[row[i]].width) / 2 + gap;
      offsets.push_back(offset);
      const auto place = wanted.find(row[i]);
      groups.push_back({(place == wanted.end() ? 0.0 : place->second) - offset, 1});
      while (groups.size() > 1 && groups[groups.size() - 2].mean() > groups.back().mean()) {
        groups[groups.size() - 2].sum += groups.back().sum;
        groups[groups.size() - 2].count += groups.back().count;
        groups.pop_back();
      }
    }
    std::size_t next = 0;
    for (const Group& group : groups)
      for (std::size_t i = 0; i < group.count; ++i, ++next)
        places_[row[next]].x = group.mean() + offsets[next];
  }

  /// Places what training alone runs to the right of all others, each row from the left.
  void place_beside() {
    double right = 0.0;
    for (const Place& place : places_)
      if (!place.beside) right = std::max(right, place.x + place.width / 2);
    std::map<std::size_t, double> edge;
    for (Place& place : places_) {
      if (!place.beside) continue;
      double& taken = edge.emplace(place.row, right + 2 * gap).first->second;
      place.x = taken + place.width / 2;
      taken += place.width + gap;
    }
  }

  Layout result() const {
    Layout layout;
    double left = 0.0, right = 0.0;
    for (const Place& place : places_) {
      left = std::min(left, place.x - place.width / 2);
      right = std::max(right, place.x + place.width / 2);
    }
    const auto at = [&](std::size_t i) {
      return Point{places_[i].x - left + Layout::margin,
                   static_cast<double>(places_[i].row) * Layout::pitch + Layout::margin};
    };
    for (std::size_t node = 0; node < model_.nodes().size(); ++node)
      layout.tops.push_back(at(node));
    for (const auto& [ends, path] : paths_) {
      Layout::Edge edge;
      edge.from = static_cast<Model::Node>(ends.first);
      edge.to = static_cast<Model::Node>(ends.second);
      for (const std::size_t i : path) {
        Point point = at(i);
        // An edge passes a row straight through the height of its boxes.
        if (i != path.front()) edge.points.push_back(point);
        point.y += Layout::height;
        if (i != path.back()) edge.points.push_back(point);
      }
      layout.edges.push_back(std::move(edge));
    }
    layout.drawing_width = right - left + 2 * Layout::margin;
    layout.drawing_height =
        static_cast<double>(rows_.size() - 1) * Layout::pitch + Layout::height + 2 * Layout::margin;
    return layout;
  }

  const Model& model_;
  std::vector<Place> places_;  ///< Those of layers first, by node.
  std::vector<std::vector<std::size_t>> rows_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> paths_;
};

}  // namespace

Layout layout_of(const Model& model) {
  return Placing(model).layout();
}

}  // namespace duplex::tools
