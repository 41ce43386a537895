// duplex keygen FILE makes a cluster key.
#include <cstdio>

#include "net/rendezvous/key.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"

namespace duplex::tools {

int keygen(int argc, const char* const* argv) {
  CommandLine app{
      "Makes a cluster key: ranks of a run that is not on one machine alone prove to each other "
      "that they know it.",
      "duplex keygen"};
  std::string file;
  app.add_option("FILE", file, "where to write it; an existing file is never overwritten")
      .required();
  if (const auto done = parse(app, argc, argv)) return *done;
  net::create_key(file);
  std::printf("key      %s\ncopy it to every machine (scp -p keeps its mode), then dist --key\n",
              file.c_str());
  return 0;
}

}  // namespace duplex::tools
