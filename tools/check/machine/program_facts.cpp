#include "tools/check/machine/program_facts.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "core/device.h"
#include "core/error.h"
#include "core/gpu/cuda.h"
#include "net/wire/frame.h"
#include "tools/check/machine/system_files.h"
#include "tools/text/version.h"

namespace duplex::tools {
namespace {

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 ...": the first word
/// that is a number with points.
std::string driver_version(const std::string& root) {
  std::istringstream words(value_in(root + "/proc/driver/nvidia/version", "NVRM version"));
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return "";
}

/// The GPUs that the driver knows, by the address of their slot.
std::vector<std::string> gpu_names(const std::string& root) {
  std::vector<std::string> slots, names;
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(root + "/proc/driver/nvidia/gpus", none))
    slots.push_back(entry.path().string());
  std::sort(slots.begin(), slots.end());
  for (const std::string& slot : slots) names.push_back(value_in(slot + "/information", "Model"));
  return names;
}

}  // namespace

void add_program_facts(MachineFacts& facts, const std::string& root) {
  facts.version = program_version;
  facts.commit = built_commit;
  facts.protocol = net::protocol_version;
  facts.backend = make_device("cpu", 0)->description();
  facts.driver = driver_version(root);
  facts.gpus = gpu_names(root);
  facts.usable_gpus = cuda_devices();
  if (facts.usable_gpus > 0 || facts.gpus.empty()) return;
  try {
    make_cuda_device();
  } catch (const Error& error) {
    facts.gpu_trouble = error.what();
  }
}

}  // namespace duplex::tools
