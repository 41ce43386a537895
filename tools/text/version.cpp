#include "tools/text/version.h"

#include "core/device.h"
#include "core/error.h"
#include "core/gpu/cuda.h"
#include "net/wire/frame.h"

namespace duplex::tools {
namespace {

std::string compiler() {
#ifdef __clang__
  return "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#else
  return std::string("g++ ") + __VERSION__;
#endif
}

/// The device's description, or why there is none.
std::string gpu() {
  try {
    return make_cuda_device()->description();
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::string version_text() {
  std::string text;
  text += std::string("duplex   ") + program_version + ", commit " + built_commit + "\n";
  text += "compiler " + compiler() + "\n";
  text += "cpu      " + make_device("cpu", 0)->description() + "\n";
  text += "gpu      " + gpu() + "\n";
  text += "protocol version " + std::to_string(net::protocol_version) + "\n";
  return text;
}

}  // namespace duplex::tools
