#include "layers/parts/part_builder.h"

#include <algorithm>

#include "core/operations.h"
#include "layers/kinds/join.h"
#include "layers/kinds/loss.h"
#include "layers/parts/crossing.h"

namespace duplex {

PartBuilder::PartBuilder(const CutNetwork& cut, int rank)
    : cut_(cut),
      units_(cut.units()),
      whole_(cut.units().model()),
      rank_(rank),
      part_{Model(whole_.title(), whole_.shape(whole_.input())), 0, 1, false} {
  for (std::size_t piece = 0; piece < cut_.pieces().size(); ++piece)
    if (cut_.pieces()[piece].rank == rank) own_.push_back(piece);
  part_.model.known_as(whole_.known_as());
  part_.model.smooth_labels(whole_.label_smoothing());
}

NetworkPart PartBuilder::build() {
  find_images();
  // Layers come in the order of the whole network, so that gradients are summed in its order, too.
  for (std::size_t node = 1; node < whole_.nodes().size(); ++node) {
    const auto whole = static_cast<Node>(node);
    for (const std::size_t piece : own_) {
      const std::size_t unit = cut_.pieces()[piece].unit;
      if (static_cast<int>(unit) != units_.unit_of(whole)) continue;
      add_layer(whole, piece);
      if (units_[unit].layers.back() == whole) send(piece);
    }
  }
  return std::move(part_);
}

/// Finds the samples whose images are read here.
void PartBuilder::find_images() {
  std::int64_t first = cut_.placement().samples, end = 0;
  for (const std::size_t piece : own_) {
    const PlacedRegion& own = cut_.pieces()[piece];
    for (const Node node : units_[own.unit].layers) {
      for (const Node input : whole_.entry(node).inputs) {
        if (units_.unit_of(input) == static_cast<int>(own.unit)) continue;
        for (const MapPart& part : units_.parts_of(input, {0, whole_.shape(input).c()})) {
          if (part.unit != MapPart::images) continue;
          first = std::min(first, own.region.first_sample);
          end = std::max(end, own.region.end_sample());
        }
      }
    }
  }
  part_.reads = first < end;
  if (part_.reads) {
    part_.first_image = first;
    part_.images = end - first;
  }
}

void PartBuilder::add_layer(Node whole, std::size_t piece) {
  const Model::Entry& entry = whole_.entry(whole);
  const Region& region = cut_.pieces()[piece].region;
  const std::int64_t channels = entry.shape.c();
  const std::vector<Node> inputs = inputs_of(whole, piece);
  part_.model.training_only(entry.training_only);
  Node node = part_.model.layer(text_of(entry.name, region, channels), layer_for(entry, region),
                                inputs, part_of(entry.name, region, channels));
  const std::int64_t made = part_.model.shape(node).c();
  if (made != region.channels.count()) {
    // It has computed neighbours, too (LRN): the channels that it reads.
    const Channels read = (*entry.layer->reads(whole_.input_shapes(entry), region.channels))[0];
    const Region all{region.first_sample, region.samples, read};
    node = part_.model.layer(
        "crop " + text_of(entry.name, region, channels),
        std::make_shared<GatherLayer>(std::vector<Region>{all},
                                      std::vector<GatherLayer::Piece>{{0, region, 0}}, region,
                                      with_channels(entry.shape, region.channels.count())),
        {node}, part_of("", region, 0));
  }
  made_[{piece, whole}] = node;
}

std::shared_ptr<const Layer> PartBuilder::layer_for(const Model::Entry& entry,
                                                    const Region& region) const {
  std::shared_ptr<const Layer> layer = entry.layer;
  if (region.channels.count() != entry.shape.c()) {
    if (std::shared_ptr<const Layer> some = entry.layer->part(region.channels)) layer = some;
  }
  const auto kind = layer->loss_kind();
  if (!kind || region.samples == cut_.placement().samples) return layer;
  const float share =
      static_cast<float>(region.samples) / static_cast<float>(cut_.placement().samples);
  return std::make_shared<LossLayer>(*kind, layer->loss_weight() * share);
}

std::vector<Model::Node> PartBuilder::inputs_of(Node whole, std::size_t piece) {
  const Model::Entry& entry = whole_.entry(whole);
  const Region& region = cut_.pieces()[piece].region;
  const std::vector<Shape> x = whole_.input_shapes(entry);
  const auto reads = entry.layer->reads(x, region.channels);
  std::vector<Node> inputs;
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    if (units_.unit_of(entry.inputs[i]) == units_.unit_of(whole)) {
      inputs.push_back(made_.at({piece, entry.inputs[i]}));
    } else {
      const Channels channels = reads ? (*reads)[i] : Channels{0, x[i].c()};
      inputs.push_back(map_of(entry.inputs[i], {region.first_sample, region.samples, channels}));
    }
  }
  return inputs;
}

/// Returns a node that is this region of a whole node's output.
Model::Node PartBuilder::map_of(Node whole, const Region& region) {
  const auto key = std::make_tuple(whole, region.first_sample, region.samples,
                                   region.channels.first, region.channels.end);
  if (const auto known = maps_.find(key); known != maps_.end()) return known->second;
  std::vector<Source> sources;
  std::vector<GatherLayer::Piece> pieces;
  for (const MapPart& part : units_.parts_of(whole, region.channels)) {
    const Region wanted{region.first_sample, region.samples, part.channels};
    std::vector<Source> found;
    if (part.unit == MapPart::images) {
      found = {{part_.model.input(),
                {part_.first_image, part_.images, {0, whole_.shape(whole_.input()).c()}}}};
    } else {
      found = sources_of(static_cast<std::size_t>(part.unit), wanted);
    }
    for (const Source& source : found) {
      pieces.push_back(
          {sources.size(), intersection(source.region, wanted), part.at - part.channels.first});
      sources.push_back(source);
    }
  }
  const Node node = assembled(whole, region, sources, pieces);
  maps_[key] = node;
  return node;
}

Model::Node PartBuilder::assembled(Node whole, const Region& region,
                                   const std::vector<Source>& sources,
                                   const std::vector<GatherLayer::Piece>& pieces) {
  const Model::Entry& entry = whole_.entry(whole);
  // Sources that follow each other whole, with all samples, need no copies by hand.
  std::int64_t next = region.channels.first;
  bool row = true;
  std::vector<Node> inputs;
  for (const GatherLayer::Piece& piece : pieces) {
    row = row && piece.taken == sources[piece.input].region &&
          piece.taken.samples == region.samples && piece.taken.channels.first + piece.shift == next;
    next = piece.taken.channels.end + piece.shift;
    inputs.push_back(sources[piece.input].node);
  }
  part_.model.training_only(entry.training_only);
  const std::string name = text_of(entry.name, region, entry.shape.c());
  if (!row || inputs.empty()) {
    std::vector<Region> regions;
    for (const Source& source : sources) regions.push_back(source.region);
    return part_.model.layer(
        "gather " + name,
        std::make_shared<GatherLayer>(regions, pieces, region,
                                      with_channels(entry.shape, region.channels.count())),
        inputs, part_of("", region, 0));
  }
  Node node = inputs[0];
  if (inputs.size() > 1)
    node = part_.model.layer("concat " + name, std::make_shared<ConcatLayer>(), inputs,
                             part_of("", region, 0));
  if (next != region.channels.end)
    node = part_.model.layer("pad " + name,
                             std::make_shared<PadChannelsLayer>(region.channels.count()), {node},
                             part_of("", region, 0));
  return node;
}

/// Returns the nodes that have some of a region of a unit's output, and together all of it.
std::vector<PartBuilder::Source> PartBuilder::sources_of(std::size_t unit, const Region& region) {
  std::vector<Source> sources;
  for (const std::size_t piece : own_) {
    const PlacedRegion& own = cut_.pieces()[piece];
    if (own.unit == unit && !intersection(own.region, region).empty())
      sources.push_back({made_.at({piece, units_[unit].layers.back()}), own.region});
  }
  for (std::size_t transfer = 0; transfer < cut_.transfers().size(); ++transfer) {
    const MapTransfer& each = cut_.transfers()[transfer];
    if (each.node == units_[unit].layers.back() && each.to == rank_ &&
        !intersection(each.region, region).empty())
      sources.push_back(received(transfer));
  }
  std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
    return std::tie(a.region.first_sample, a.region.channels.first) <
           std::tie(b.region.first_sample, b.region.channels.first);
  });
  return sources;
}

PartBuilder::Source PartBuilder::received(std::size_t transfer) {
  if (const auto known = received_.find(transfer); known != received_.end()) return known->second;
  const MapTransfer& each = cut_.transfers()[transfer];
  const Model::Entry& entry = whole_.entry(each.node);
  part_.model.training_only(entry.training_only);
  const Shape sample = with_channels(entry.shape, each.region.channels.count());
  const Node node =
      part_.model.layer("receive " + text_of(entry.name, each.region, entry.shape.c()),
                        std::make_shared<ReceiveLayer>(transfer, sample, each.gradient), {},
                        part_of("", each.region, 0));
  return received_[transfer] = {node, each.region};
}

/// Sends what a piece of a unit has computed to all who read it.
void PartBuilder::send(std::size_t piece) {
  const PlacedRegion& own = cut_.pieces()[piece];
  const Node whole = units_[own.unit].layers.back();
  std::vector<SendLayer::Piece> pieces;
  for (std::size_t i = 0; i < cut_.transfers().size(); ++i) {
    const MapTransfer& each = cut_.transfers()[i];
    if (each.node == whole && each.from == rank_ && !intersection(each.region, own.region).empty())
      pieces.push_back({i, each.region, each.gradient});
  }
  if (pieces.empty()) return;
  const Model::Entry& entry = whole_.entry(whole);
  part_.model.training_only(entry.training_only);
  part_.model.layer("send " + text_of(entry.name, own.region, entry.shape.c()),
                    std::make_shared<SendLayer>(own.region, pieces), {made_.at({piece, whole})},
                    part_of("", own.region, 0));
}

/// Names a region as NumPy would: name[samples, channels], without what is whole.
std::string PartBuilder::text_of(const std::string& name, const Region& region,
                                 std::int64_t channels) const {
  const auto run = [](std::int64_t first, std::int64_t end) {
    return std::to_string(first) + ":" + std::to_string(end);
  };
  const bool all_samples = region.samples == cut_.placement().samples;
  const bool all_channels = region.channels.count() == channels;
  if (all_samples && all_channels) return name;
  const std::string samples = all_samples ? ":" : run(region.first_sample, region.end_sample());
  if (all_channels) return name + "[" + samples + "]";
  return name + "[" + samples + ", " + run(region.channels.first, region.channels.end) + "]";
}

PartOf PartBuilder::part_of(const std::string& layer, const Region& region,
                            std::int64_t channels) const {
  PartOf part;
  part.layer = layer;
  part.first_sample = region.first_sample;
  part.samples = region.samples;
  part.first_channel = region.channels.first;
  part.all_channels = channels;
  return part;
}

}  // namespace duplex
