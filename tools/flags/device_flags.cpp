#include "tools/flags/device_flags.h"

#include "tools/flags/command_line.h"

namespace duplex::tools {

void add_device_flags(CommandLine& app, DeviceSpec& spec, const std::string& more) {
  std::string devices;
  for (const std::string& name : device_names()) devices += (devices.empty() ? "" : ", ") + name;
  app.add_option("--device", spec.device, "what computes: " + devices + " (default auto)" + more);
  app.add_option("--threads", spec.threads,
                 "threads that compute, or for a GPU compile engines (default: one a core; dist: a "
                 "machine's cores, shared out among its slots)")
      .check(between(0, 1024));
  app.add_option("--precision", spec.precision,
                 "on a GPU: float32; tf32, whose products round to ten bits; bf16, which stores "
                 "activations in half the memory (default float32)")
      .check(one_of({"float32", "tf32", "bf16"}));
  app.add_option("--layout", spec.layout,
                 "on a GPU, the layout of activations: nchw, nhwc, or measured, the faster one for "
                 "this network and batch (default measured)")
      .check(one_of({"measured", "nchw", "nhwc"}));
}

void add_graphs_flag(CommandLine& app, DeviceSpec& spec) {
  app.add_flag("--cuda-graphs", spec.graphs,
               "on a GPU, ask for the whole forward, and the whole backward, by one call each");
}

}  // namespace duplex::tools
