// bin/duplex COMMAND [flags] runs a command.
#include <sys/prctl.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "core/error.h"
#include "core/first_process.h"
#include "core/processor/denormals.h"
#include "core/program_path.h"
#include "net/wire/frame.h"
#include "tools/commands.h"
#include "tools/text/version.h"

namespace {

struct Command {
  const char* name;
  int (*run)(int, const char* const*);
  const char* summary;
};

constexpr Command commands[] = {
    {"local", duplex::tools::local, "train on this machine; measure t_grad, layer by layer"},
    {"dist", duplex::tools::dist, "be one rank of distributed training"},
    {"evaluate", duplex::tools::evaluate, "test trained weights, class by class"},
    {"classify", duplex::tools::classify, "what do trained weights take an image for?"},
    {"launch", duplex::tools::launch, "start dist on every machine of a nodefile, and end it"},
    {"check", duplex::tools::check, "what would spoil a run on these machines, and the remedy"},
    {"transport", duplex::tools::transport, "measure t_comm between this machine and another"},
    {"plan", duplex::tools::plan, "does it pay to train on several machines, and how?"},
    {"probe", duplex::tools::probe, "measure a machine and its links, as plan asks for it"},
    {"partition", duplex::tools::partition, "cut a network over machines; what would cross?"},
    {"estimate", duplex::tools::estimate, "the thesis's equations: the speedup of N machines"},
    {"simulate", duplex::tools::simulate, "play a run of dist in virtual time"},
    {"report", duplex::tools::report, "make one HTML page of runs, or of the thesis"},
    {"compare", duplex::tools::compare, "run directories side by side: costs, speedup, accuracy"},
    {"bench", duplex::tools::bench, "time a network's training steps, without a data set"},
    {"nets", duplex::tools::nets, "print the networks, or one network's table of layers"},
    {"onnx", duplex::tools::onnx, "write a network as an ONNX file, or read one"},
    {"pack", duplex::tools::pack, "decode a folder of images once, into a packed file"},
    {"keygen", duplex::tools::keygen, "make a cluster's key"},
};

void print_usage(std::FILE* to) {
  std::fputs("usage: duplex COMMAND [flags]      duplex COMMAND --help      duplex --version\n\n",
             to);
  for (const Command& command : commands) {
    std::fprintf(to, "  %-9s %s\n", command.name, command.summary);
  }
}

/// Prints one line. The names of files, classes and tensors in it may have any bytes.
void print_error(const std::exception& error) {
  std::fprintf(stderr, "duplex: %s\n", duplex::net::printable(error.what()).c_str());
}

int run(int argc, char** argv) {
  if (argc < 2) {
    print_usage(stderr);
    return static_cast<int>(duplex::Exit::usage);
  }
  if (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0) {
    print_usage(stdout);
    return 0;
  }
  if (std::strcmp(argv[1], "--version") == 0) {
    std::fputs(duplex::tools::version_text().c_str(), stdout);
    return 0;
  }
  for (const Command& command : commands) {
    if (std::strcmp(argv[1], command.name) == 0) return command.run(argc - 1, argv + 1);
  }
  std::fprintf(stderr, "duplex: unknown command '%s'\n", duplex::net::printable(argv[1]).c_str());
  print_usage(stderr);
  return static_cast<int>(duplex::Exit::usage);
}

}  // namespace

int main(int argc, char** argv) {
  duplex::leave_first_process();
  duplex::flush_denormals();
  // Otherwise ps and pkill would know a bundle's processes by the name of the loader.
  if (duplex::run_by_loader()) ::prctl(PR_SET_NAME, "duplex");
  try {
    return run(argc, argv);
  } catch (const duplex::Error& error) {
    print_error(error);
    return static_cast<int>(error.code);
  } catch (const std::bad_alloc&) {
    std::fputs("duplex: out of memory (a smaller --batch needs less, where there is one)\n",
               stderr);
  } catch (const std::exception& error) {
    print_error(error);
  }
  return static_cast<int>(duplex::Exit::failed);
}
