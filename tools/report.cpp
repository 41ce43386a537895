// duplex report RUN... makes one HTML page of runs, of the thesis, or of time to accuracy.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/files/output_file.h"
#include "core/files/own_files.h"
#include "net/wire/frame.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/launch/children.h"
#include "tools/report/accuracy/accuracy_page.h"
#include "tools/report/page.h"
#include "tools/report/run_page.h"
#include "tools/report/thesis/thesis_page.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

struct Flags {
  std::vector<std::string> directories;
  std::string output;
  bool watch = false;
  double interval = 5.0;  ///< Seconds.
};

struct Runs {
  std::vector<reports::RunData> runs;
  std::vector<reports::LinkData> links;

  bool ended() const {
    for (const reports::RunData& run : runs)
      if (!run.ended) return false;
    return true;
  }
};

/// One of several that cannot be read is left out; `said` has what the user has been told of them.
Runs read(const std::vector<std::string>& directories, std::set<std::string>& said) {
  Runs read;
  for (const std::string& directory : directories) {
    try {
      if (reports::is_link(directory))
        read.links.push_back(reports::read_link(directory));
      else
        read.runs.push_back(reports::read_run_data(directory));
    } catch (const Error& error) {
      if (directories.size() == 1) throw;
      if (said.insert(error.what()).second)
        std::fprintf(stderr, "left out: %s\n", net::printable(error.what()).c_str());
    }
  }
  if (read.runs.empty())
    throw Error("report: give a run of local, dist or simulate beside transport's", Exit::usage);
  return read;
}

void write_page(const Flags& flags) {
  std::set<std::string> said;
  const Runs all = read(flags.directories, said);
  for (const reports::RunData& run : all.runs)
    if (!run.complete)
      std::fprintf(stderr, "%s: the run was interrupted; reported as far as it came\n",
                   run.directory.c_str());
  write_file(flags.output, reports::run_page(all.runs, all.links));
}

/// A run claims its config.json while it is empty, and writes it when its ranks have met.
bool has_begun(const std::string& directory) {
  if (reports::is_link(directory)) return true;
  std::error_code none;
  return std::filesystem::file_size(directory + "/" + config_file, none) > 0 && !none;
}

/// Waits for so many seconds. Returns false if Ctrl-C or SIGTERM came.
bool wait(double seconds) {
  return pause_together(seconds) == 0;
}

/// Waits until all runs have begun. Returns false if Ctrl-C or SIGTERM came first.
bool await_runs(const Flags& flags) {
  for (const std::string& directory : flags.directories) {
    for (bool told = false; !has_begun(directory); told = true) {
      if (!told) std::fprintf(stderr, "%s: waits for the run to begin\n", directory.c_str());
      if (!wait(std::min(flags.interval, 1.0))) return false;
    }
  }
  return true;
}

/// Throws Error where the page cannot be rewritten.
void require_rewritable(const std::string& output) {
  const OutputFile writable(output);
  if (!writable.regular())
    throw Error("report: --watch replaces its page, and " + output + " is no regular file",
                Exit::usage);
}

/// Rewrites the page while runs go on. Returns the exit code.
int watch(const Flags& flags) {
  constexpr int failures_in_a_row = 3;
  for (const std::string& directory : flags.directories)
    if (!std::filesystem::is_directory(directory))
      throw Error("report: there is no run directory " + directory);
  note_interrupts();
  require_rewritable(flags.output);
  if (!await_runs(flags)) return 128 + interruption();
  std::set<std::string> said;
  bool watched = false, watched_end = false;
  for (int failures = 0;;) {
    Runs all;
    try {
      all = read(flags.directories, said);
      failures = 0;
    } catch (const Error&) {
      // A run that is started again meanwhile replaces its files one by one.
      if (!watched || ++failures == failures_in_a_row) throw;
      if (!wait(flags.interval)) return 128 + interruption();
      continue;
    }
    const bool ended = all.ended();
    if (!ended) watched_end = false;
    // The other ranks write their files soon after the summary.
    if (ended && !watched_end && watched) {
      watched_end = true;
      wait(std::min(flags.interval, 1.0));
      continue;
    }
    const bool goes_on = !ended && interrupts() == 0;
    for (reports::RunData& run : all.runs) run.goes_on = goes_on && !run.ended;
    write_file(flags.output,
               reports::run_page(all.runs, all.links, goes_on ? flags.interval : 0.0));
    if (!watched) std::printf("%s\n", flags.output.c_str());
    std::fflush(stdout);
    watched = true;
    if (ended) return 0;
    // The page still loads itself where Ctrl-C came while it was written, so it is written again.
    if (!goes_on) return 128 + interruption();
    wait(flags.interval);
  }
}

/// Throws Error(Exit::usage) where the page would take the place of a file that a run has left.
void check_output(const Flags& flags) {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(flags.output, absent)) return;
  std::string begin(reports::page_begin.size(), '\0');
  std::ifstream(flags.output, std::ios::binary)
      .read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (begin == reports::page_begin) return;
  for (const std::string& directory : flags.directories)
    if (lies_in(flags.output, directory))
      throw Error("report: --output " + flags.output + " is a file of " + directory +
                      " and no page, and would be replaced; write to another one",
                  Exit::usage);
}

Flags parse_flags(CommandLine& app, int argc, const char* const* argv, std::optional<int>& done) {
  Flags flags;
  app.add_option(
         "RUN", flags.directories,
         "run directories of local, dist or simulate, and of transport; or one of make thesis or "
         "make accuracy")
      .required();
  app.add_option("--output", flags.output,
                 "the page (default: report.html in the first directory)");
  const Flag watching =
      app.add_flag("--watch", flags.watch,
                   "rewrite the page every few seconds, which a browser loads again by itself, "
                   "until the runs have ended, or Ctrl-C");
  app.add_option("--interval", flags.interval, "seconds between two of them (default 5)")
      .transform(as_seconds())
      .check(between(0.1, 86400.0))
      .needs(watching);
  done = parse(app, argc, argv);
  if (!done && flags.output.empty()) flags.output = flags.directories.front() + "/report.html";
  return flags;
}

}  // namespace

int report(int argc, const char* const* argv) {
  CommandLine app{
      "Makes one HTML page, which needs nothing beside it, of run directories, or of what make "
      "thesis or make accuracy has left.",
      "duplex report"};
  std::optional<int> done;
  const Flags flags = parse_flags(app, argc, argv, done);
  if (done) return *done;
  check_output(flags);
  const std::string& first = flags.directories.front();
  if (const bool thesis = reports::is_thesis(first); thesis || reports::is_accuracy(first)) {
    const std::string whose = first + " is what make " + (thesis ? "thesis" : "accuracy") + " left";
    if (flags.directories.size() > 1)
      throw Error("report: " + whose + "; it goes alone", Exit::usage);
    if (flags.watch)
      throw Error("report: " + whose + "; --watch is for runs that go on", Exit::usage);
    write_file(flags.output, thesis ? reports::thesis_page(reports::read_thesis(first))
                                    : reports::accuracy_page(reports::read_accuracy(first)));
  } else {
    if (flags.watch) return watch(flags);
    write_page(flags);
  }
  std::printf("%s\n", flags.output.c_str());
  return 0;
}

}  // namespace duplex::tools
