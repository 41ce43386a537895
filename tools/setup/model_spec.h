// A model specification: which network, and in which of its variants.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "layers/model.h"
#include "models/registry.h"
#include "net/rendezvous/handshake.h"
#include "tools/run_directory/run_config.h"

namespace duplex::tools {

struct ModelSpec {
  std::string net;               ///< A name of models::all(), or the path of a network's file.
  models::ModelOptions options;  ///< options.file: the text of that file, as it was read once.

  /// Takes the value of --net, and the text of the file that it names, if it can be read. (Where it
  /// cannot, build() says why, unless the text comes from somewhere else until then.)
  void take(const std::string& value);
  /// Takes a network that something has kept: a run, a plan, what was measured of machines. `what`
  /// is its path. Where the user has given the same network with another text, it throws
  /// Error(Exit::usage), and says where the texts differ.
  void take_kept(const std::string& network, const std::optional<std::string>& text,
                 const std::string& what);
  /// Does the same with the run of a directory that a training goes on in, if it is of this
  /// network's file; any other run is left alone. Throws Error as read_config does, too.
  void take_resumed(const std::string& directory);

  /// Takes what the user has not given from the runs of these directories: the network from the
  /// first one that has any; its classes, input and variant from the first that is of the network.
  /// Throws Error as read_config does.
  void fill_from(const std::vector<std::string>& directories);
  /// Takes the size of a sample, "1x3x224x224", as far as the user has not given it.
  void set_input(const std::string& sample);
  /// The path of its file; "": the network is compiled.
  std::string path() const { return models::names_file(net) ? net : ""; }
  /// Its text; none: the network is compiled.
  std::optional<std::string> file() const;
  /// "; network file ab12cd34", with a digest of what the file says: comments, spaces and how
  /// repeats are written do not count. Empty: the network is compiled.
  std::string file_digest(const Model& model) const;
  /// The fingerprint by which ranks compare a model: its name, its classes, its trained parameters'
  /// names and sizes, and what its file says.
  net::Fingerprint fingerprint(const Model& model) const;
  /// Throws Error(Exit::usage), as models::build does.
  Model build() const { return models::build(net, options); }
  /// The model's part of config.json.
  RunConfig config(const Model& model) const;
};

}  // namespace duplex::tools
