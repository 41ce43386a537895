#include "tools/text/plot.h"

#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "core/error.h"

namespace duplex::tools {
namespace {

/// Quotes a string for gnuplot.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_executable(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

bool has_display() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

/// Size of the terminal in characters, in x and y.
std::string text_size() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
  return std::to_string(known ? size.ws_col - 1 : 79) + "," +
         std::to_string(known && size.ws_row > 15 ? std::min<int>(size.ws_row - 2, 40) : 24);
}

std::string terminal_for(const std::string& file) {
  if (ends_with(file, ".png")) return "set terminal pngcairo size 960,600\n";
  if (ends_with(file, ".svg")) return "set terminal svg size 960,600\n";
  if (!file.empty())
    throw Error("plot: " + file + " is neither a .png nor a .svg file", Exit::usage);
  return has_display() ? "" : "set terminal dumb size " + text_size() + "\n";
}

std::string script_of(const Chart& chart, const std::string& file) {
  std::ostringstream script;
  script.precision(12);
  script << terminal_for(file);
  if (!file.empty()) script << "set output " << in_quotes(file) << "\n";
  script << "set termoption noenhanced\nset title " << in_quotes(chart.title) << "\nset xlabel "
         << in_quotes(chart.x) << "\nset ylabel " << in_quotes(chart.y)
         << "\nset key left top\nset yrange [0:*]\nset xtics nomirror\nset ytics nomirror\n";
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    script << "$curve" << i << " << END\n";
    const std::vector<double>& values = chart.curves[i].values;
    for (std::size_t k = 0; k < values.size(); ++k) script << k + 1 << ' ' << values[k] << '\n';
    script << "END\n";
  }
  script << "plot ";
  for (std::size_t i = 0; i < chart.curves.size(); ++i)
    script << (i > 0 ? ", " : "") << "$curve" << i << " with "
           << (chart.curves[i].dashed ? "lines dashtype 2" : "linespoints") << " linewidth 2 title "
           << in_quotes(chart.curves[i].name);
  script << "\n";
  return script.str();
}

}  // namespace

void plot(const Chart& chart, const std::string& file) {
  const std::string script = script_of(chart, file);
  if (!is_executable("gnuplot"))
    throw Error("plot: gnuplot is not installed (package gnuplot-nox); --output csv goes without");
  std::fflush(stdout);
  // A gnuplot that ends early must not end this program by a signal.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  std::FILE* gnuplot = ::popen("gnuplot --persist", "w");
  if (gnuplot == nullptr) throw Error("plot: gnuplot could not be started");
  std::fputs(script.c_str(), gnuplot);
  const int status = ::pclose(gnuplot);
  std::signal(SIGPIPE, before);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error("plot: gnuplot failed; it says why above");
}

}  // namespace duplex::tools
