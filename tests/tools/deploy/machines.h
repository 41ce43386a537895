// Machines that are folders: an ssh that runs what it is told on this machine, where each host has
// a folder of its own in the place of one that all have.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/deploy/deploy.h"

namespace duplex::tools::testing {

class Deploying : public ::testing::Test {
 protected:
  void SetUp() override {
    write_program("ssh",
                  "while [ \"$1\" = -o ]; do shift 2; done\n"
                  "host=$1; all=" +
                      folder_.path() +
                      "; own=$all/$host; shift\n"
                      "echo \"$host\" >> $all/calls\n"
                      "if [ -e $all/down-$host ]; then cat $all/down-$host >&2; exit 255; fi\n"
                      "[ ! -e $all/greeting ] || cat $all/greeting\n"
                      "[ ! -e $all/shared ] || own=$all/shared\n"
                      "PATH=$all/bin-$host:$PATH; mkdir -p $own\n"
                      "words=$(printf '%s' \"$*\" | sed \"s#$all/there#$own#g\")\n"
                      "if [ -e $all/cut-$host ]; then\n"
                      "  head -c $(cat $all/cut-$host) | sh -c \"$words\"\n"
                      "else\n"
                      "  exec sh -c \"$words\"\n"
                      "fi\n");
    write_text(nodes_, "198.51.100.1\n198.51.100.2 # two ranks\n198.51.100.2\n");
    make_bundle();
  }

  void write_program(const std::string& name, const std::string& script) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    write_text(folder_ / name, "#!/bin/sh\n" + script);
    ASSERT_EQ(::chmod((folder_ / name).c_str(), 0755), 0);
  }

  /// A program that a machine has in the place of the usual one.
  void give(const std::string& host, const std::string& program, const std::string& script) const {
    write_program("bin-" + host + "/" + program, script);
  }

  /// A folder as `make bundle` makes it, whose program is this one. Its two libraries cannot be
  /// packed.
  void make_bundle() const {
    const std::string version = run({"--version"}).out;
    const std::string first = version.substr(0, version.find('\n'));
    write_program("made/duplex-1.0/duplex", "[ \"$1\" != --version ] || { echo '" + first +
                                                "'; exit; }\n" + "exec '" + std::getenv("DUPLEX") +
                                                "' \"$@\"\n");
    std::filesystem::create_directories(folder_ / "made/duplex-1.0/lib");
    for (const char* name : {"lib/a.so", "lib/b.so"}) {
      const RandomStream random(1, static_cast<std::uint64_t>(name[4]));
      std::string noise;
      for (std::uint64_t i = 0; i < 1000000; ++i) noise += static_cast<char>(random.below(i, 256));
      write_text(bundle_ + "/" + name, noise);
    }
    pack();
  }

  /// Writes MANIFEST.
  void pack() const {
    ASSERT_EQ(std::system(("cd " + bundle_ + " && sha256sum duplex lib/* > MANIFEST").c_str()), 0);
  }

  Result launch(const std::vector<std::string>& flags,
                const std::vector<std::string>& dist = {}) const {
    std::vector<std::string> words{"launch", "--nodefile", nodes_, "--ssh", folder_ / "ssh"};
    words = plus(words, flags);
    if (!dist.empty()) words = plus(plus(words, {"--"}), dist);
    return run(words);
  }
  Result deploy(const std::vector<std::string>& more = {}) const {
    return launch(plus({"--deploy", there_, "--bundle", bundle_}, more));
  }

  /// The path on a host of what all know as a path below `there`.
  std::string on(const std::string& host, const std::string& path) const {
    return folder_ / host + "/duplex/" + path;
  }

  /// Returns how often ssh was called for each host since this was last asked.
  std::string calls() const {
    const std::string text = read_text(folder_ / "calls");
    std::filesystem::remove(folder_ / "calls");
    std::string counts;
    for (const char* host : {"198.51.100.1\n", "198.51.100.2\n", "198.51.100.3\n"}) {
      int count = 0;
      for (std::size_t at = 0; (at = text.find(host, at)) != std::string::npos; ++at) ++count;
      counts += std::to_string(count);
    }
    return counts;
  }

  TemporaryFolder folder_;
  const std::string nodes_ = folder_ / "nodes", there_ = folder_ / "there/duplex";
  const std::string bundle_ = folder_ / "made/duplex-1.0";
};

}  // namespace duplex::tools::testing
