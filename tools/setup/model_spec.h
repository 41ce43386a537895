// A model specification: which network, and in which of its variants.
#pragma once
#include <string>
#include <vector>

#include "layers/model.h"
#include "models/registry.h"
#include "net/rendezvous/handshake.h"
#include "tools/run_directory/run_config.h"

namespace duplex::tools {

struct ModelSpec {
  std::string net;  ///< A name of models::all().
  models::ModelOptions options;

  /// Takes what the user has not given from the runs of these directories: the network from the
  /// first one that has any; its classes, input and variant from the first that is of the network.
  /// Throws Error as read_config does.
  void fill_from(const std::vector<std::string>& directories);
  /// Takes the size of a sample, "1x3x224x224", as far as the user has not given it.
  void set_input(const std::string& sample);
  /// Throws Error(Exit::usage), as models::build does.
  Model build() const { return models::build(net, options); }
  /// The model's part of config.json.
  RunConfig config(const Model& model) const;
};

/// The fingerprint by which ranks compare a model: its name, its classes, and its trained
/// parameters' names and sizes.
net::Fingerprint fingerprint_of(const Model& model);

}  // namespace duplex::tools
