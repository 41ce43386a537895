// duplex check looks for what would spoil a run on the machines of a nodefile, or make it slower.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "core/error.h"
#include "net/wire/frame.h"
#include "tools/check/machine/agent.h"
#include "tools/check/report.h"
#include "tools/check/survey.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/launch/nodefile.h"

namespace duplex::tools {

int check(int argc, const char* const* argv) {
  CommandLine app{
      "Looks for what would spoil a run on the machines of a nodefile, or make it slower: "
      "versions, "
      "clocks, cores and their load, memory, disks, GPUs, links, TCP's settings, names, firewalls, "
      "and the rate between every two. It says how to mend each. Exit code 1: something would "
      "spoil a run. It starts itself on the other machines by ssh, as launch does, and asks ranks' "
      "ports: no run may be under way there.",
      "duplex check"};
  SurveySettings settings;
  std::string nodefile, output = "table", here;
  const Flag nodes = app.add_option("--nodefile", nodefile,
                                    "the machines: host or host:port a line, slots=N behind it");
  app.add_option("--ssh", settings.ssh, "the program that reaches other machines (default ssh)");
  app.add_option("--seconds", settings.seconds,
                 "seconds that each link is measured each way, about (default 0.2)")
      .transform(as_seconds())
      .check(between(0.01, 10.0));
  app.add_option("--output", output, "table (default) or json, which has every fact")
      .check(one_of({"table", "json"}));
  app.add_option(
         "--here", here,
         "look at this machine, which the nodefile calls so, and answer what standard input "
         "asks: what check runs on every machine")
      .excludes(nodes);
  if (const auto done = parse(app, argc, argv)) return *done;
  std::signal(SIGPIPE, SIG_IGN);
  if (!here.empty()) {
    try {
      serve_check(stdin, stdout);
    } catch (const Error& error) {
      std::fprintf(stderr, "duplex: %s\n", net::printable(error.what()).c_str());
      ::_exit(static_cast<int>(error.code));
    }
    ::_exit(0);  // A thread may still wait for a name server.
  }
  if (nodefile.empty())
    throw Error("check: --nodefile is required (see duplex check --help)", Exit::usage);
  settings.log = [](const std::string& line) { std::fprintf(stderr, "check: %s\n", line.c_str()); };
  const Survey survey = survey_machines(machines_of(read_nodes(nodefile)), settings);
  const std::vector<Finding> findings = findings_of(survey);
  std::fputs(
      (output == "json" ? check_json(survey, findings) : check_table(survey, findings)).c_str(),
      stdout);
  return static_cast<int>(worst(findings) == Verdict::spoils ? Exit::failed : Exit::ok);
}

}  // namespace duplex::tools
