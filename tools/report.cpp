// duplex report RUN... makes one HTML page of runs, or of the thesis.
#include <cstdio>

#include "core/error.h"
#include "core/files/output_file.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/report/run_page.h"
#include "tools/report/thesis/thesis_page.h"

namespace duplex::tools {

int report(int argc, const char* const* argv) {
  CommandLine app{
      "Makes one HTML page, which needs nothing beside it, of run directories, or of what make "
      "thesis "
      "has left.",
      "duplex report"};
  std::vector<std::string> directories;
  std::string output;
  app.add_option(
         "RUN", directories,
         "run directories of local, dist or simulate, and of transport; or one of make thesis")
      .required();
  app.add_option("--output", output, "the page (default: report.html in the first directory)");
  if (const auto done = parse(app, argc, argv)) return *done;
  if (output.empty()) output = directories.front() + "/report.html";

  std::string page;
  if (reports::is_thesis(directories.front())) {
    if (directories.size() > 1)
      throw Error("report: " + directories.front() + " is the thesis's; it goes alone",
                  Exit::usage);
    page = reports::thesis_page(reports::read_thesis(directories.front()));
  } else {
    std::vector<reports::RunData> runs;
    std::vector<reports::LinkData> links;
    for (const std::string& directory : directories) {
      try {
        if (reports::is_link(directory))
          links.push_back(reports::read_link(directory));
        else
          runs.push_back(reports::read_run_data(directory));
      } catch (const Error& error) {
        if (directories.size() == 1) throw;
        std::fprintf(stderr, "left out: %s\n", error.what());
      }
    }
    if (runs.empty())
      throw Error("report: give a run of local, dist or simulate beside transport's", Exit::usage);
    for (const reports::RunData& run : runs)
      if (!run.complete)
        std::fprintf(stderr, "%s: the run was interrupted; reported as far as it came\n",
                     run.directory.c_str());
    page = reports::run_page(runs, links);
  }
  write_file(output, page);
  std::printf("%s\n", output.c_str());
  return 0;
}

}  // namespace duplex::tools
