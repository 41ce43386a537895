#include "tools/run_directory.h"

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/output_file.h"

namespace duplex::tools {
namespace {

std::string default_path(const std::string& command, const std::string& net) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return "runs/" + command + "-" + net + "-" + text;
}

}  // namespace

RunDirectory::RunDirectory(std::string path, const std::string& command, const std::string& net)
    : path_(path.empty() ? default_path(command, net) : std::move(path)) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (!error && !std::filesystem::is_directory(path_, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) throw Error("run directory " + path_ + " cannot be made: " + error.message());
}

void RunDirectory::write(const std::string& name, const std::string& content) const {
  write_file(file(name), content);
}

MetricsFile::MetricsFile(const std::string& path)
    : path_(path), file_(std::fopen(path.c_str(), "we"), std::fclose) {
  if (!file_) check(EOF);
  check(
      std::fprintf(file_.get(), "step,epoch,loss,rate,total_s,data_s,gradient_s,await_s,push_s\n"));
}

void MetricsFile::check(int result) {
  if (result < 0) {
    throw Error(path_ + " cannot be written: " + std::generic_category().message(errno));
  }
}

void MetricsFile::write(const StepMetrics& row) {
  char loss[32] = "";
  if (row.loss) std::snprintf(loss, sizeof loss, "%.9g", *row.loss);
  check(std::fprintf(file_.get(), "%llu,%llu,%s,%.9g,%.9f,%.9f,%.9f,%.9f,%.9f\n",
                     static_cast<unsigned long long>(row.step),
                     static_cast<unsigned long long>(row.epoch), loss, double{row.rate}, row.total,
                     row.data, row.gradient, row.await, row.push));
  check(std::fflush(file_.get()));
}

}  // namespace duplex::tools
