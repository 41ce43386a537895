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

RowFile::RowFile(std::string path, const std::string& columns)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "we"), std::fclose) {
  write(columns);
}

void RowFile::write(const std::string& row) {
  if (!file_ || std::fprintf(file_.get(), "%s\n", row.c_str()) < 0 ||
      std::fflush(file_.get()) != 0) {
    throw Error(path_ + " cannot be written: " + std::generic_category().message(errno));
  }
}

MetricsFile::MetricsFile(const std::string& path)
    : file_(path, "step,epoch,loss,rate,total_s,data_s,gradient_s,await_s,push_s") {}

void MetricsFile::write(const StepMetrics& row) {
  char loss[32] = "", text[256];
  if (row.loss) std::snprintf(loss, sizeof loss, "%.9g", *row.loss);
  std::snprintf(text, sizeof text, "%llu,%llu,%s,%.9g,%.9f,%.9f,%.9f,%.9f,%.9f",
                static_cast<unsigned long long>(row.step),
                static_cast<unsigned long long>(row.epoch), loss, double{row.rate}, row.total,
                row.data, row.gradient, row.await, row.push);
  file_.write(text);
}

}  // namespace duplex::tools
