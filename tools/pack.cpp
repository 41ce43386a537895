// duplex pack decodes and scales a data set once, into one file that later runs read instead.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/clock.h"
#include "core/error.h"
#include "core/files/own_files.h"
#include "datasets/packed.h"
#include "net/wire/frame.h"
#include "tools/commands.h"
#include "tools/display/progress.h"
#include "tools/flags/command_line.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

volatile std::sig_atomic_t interrupted = 0;

using Handler = void (*)(int);

/// Lets an interrupt end the work in order, so that no temporary file is left; a second one ends
/// the program at once.
class InterruptHandler {
 public:
  InterruptHandler() : interrupt_(set(SIGINT)), terminate_(set(SIGTERM)) {}
  ~InterruptHandler() {
    std::signal(SIGINT, interrupt_);
    std::signal(SIGTERM, terminate_);
  }
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  static Handler set(int number) {
    return std::signal(number, [](int received) {
      interrupted = 1;
      std::signal(received, SIG_DFL);
    });
  }

  Handler interrupt_, terminate_;
};

void list(const std::vector<datasets::LeftOut>& entries, const char* what) {
  if (entries.empty()) return;
  std::printf("%s %s:\n", grouped(static_cast<std::int64_t>(entries.size())).c_str(), what);
  for (const datasets::LeftOut& entry : entries) {
    std::printf("  %s\n", net::printable(entry.name + ": " + entry.reason).c_str());
  }
}

/// Throws Error(Exit::usage) where the packed file would take the place of what is packed, or of
/// another file of the data set's folder that is none of these.
void check_output(const std::string& data, const std::string& output) {
  require_own_files("pack", {{"--datadir", data}}, {{"--output", output}});
  std::error_code absent;
  if (std::filesystem::is_regular_file(output, absent) && lies_in(output, data) &&
      !datasets::PackedDataset::is_there(output))
    throw Error("pack: --output " + output +
                    " is a file of the data set, and would replace it; write to another one",
                Exit::usage);
}

struct Flags {
  std::string folder, output;
  int input = 0, threads = 0;
  bool grey = false, strict = false;
};

}  // namespace

int pack(int argc, const char* const* argv) {
  Flags flags;
  CommandLine app(
      "Decodes and scales a data set once, into one file that later runs read at memory "
      "speed: give it to them as --datadir. Images are squashed to the size, whatever EXIF says "
      "of their orientation, without alpha.",
      "duplex pack");
  app.add_option("--datadir", flags.folder,
                 "a folder with a folder of JPEG or PNG images for each class, or a folder with "
                 "IDX files")
      .required();
  app.add_option("--output", flags.output, "the file to write").required();
  app.add_option("--input", flags.input,
                 "width and height to scale to (default: 224 for images, IDX as it is)")
      .check(between(1, 16384));
  app.add_flag("--grey", flags.grey, "one channel instead of three");
  app.add_flag("--strict", flags.strict, "an image that cannot be read ends the work");
  app.add_option("--threads", flags.threads, "threads that decode (default: one a core)")
      .check(between(1, 1024));
  if (const auto done = parse(app, argc, argv)) return *done;

  check_output(flags.folder, flags.output);
  datasets::DatasetOptions options;
  options.height = options.width = flags.input;
  options.channels = flags.grey ? 1 : 0;
  options.strict = flags.strict;
  options.threads = flags.threads;
  const auto data = datasets::open_dataset(flags.folder, options);
  std::printf("data     %s\n", data->description().c_str());
  const InterruptHandler handler;
  Progress progress(Display::here());
  const std::int64_t begin = clock_ns();
  const std::string all = grouped(static_cast<std::int64_t>(data->size()));
  const datasets::PackResult result = datasets::pack_dataset(
      *data, flags.output, flags.threads, flags.strict, [&](std::uint64_t done) {
        if (interrupted != 0) throw Error("interrupted; nothing was written");
        if (!progress.due()) return;
        const double rate = static_cast<double>(done) / seconds(clock_ns() - begin);
        progress.show("pack     " + grouped(static_cast<std::int64_t>(done)) + " of " + all +
                      " images, " + fixed(rate, 0) + " a second");
      });
  progress.clear();
  std::vector<datasets::LeftOut> skipped = data->catalogue().skipped;
  skipped.insert(skipped.end(), result.skipped.begin(), result.skipped.end());
  list(data->catalogue().ignored, "files ignored, as they are no images");
  list(skipped, "images skipped, as they cannot be read");
  std::printf("packed   %s images into '%s', %s MB, skipped %s, in %s\n",
              grouped(static_cast<std::int64_t>(result.packed)).c_str(), flags.output.c_str(),
              grouped(static_cast<std::int64_t>(result.bytes / 1000000)).c_str(),
              grouped(static_cast<std::int64_t>(skipped.size())).c_str(),
              clock_text(seconds(clock_ns() - begin)).c_str());
  return 0;
}

}  // namespace duplex::tools
