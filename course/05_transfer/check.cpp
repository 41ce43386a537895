// Compares with figures that were worked out by hand, and measures by duplex transport.
#include "course/05_transfer/check.h"

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "course/harness/program.h"
#include "course/harness/scalars.h"

namespace duplex::course {
namespace {

/// Returns the seconds that LeNet's weights take over loopback, where both ends send at most so
/// many megabits of payload a second.
double measured_seconds(int megabits) {
  std::string folder = (std::filesystem::temp_directory_path() / "duplex-course-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    throw Error("no temporary folder can be made: " + folder);
  const std::string server = "127.0.0.1:" + std::to_string(free_port());
  const std::string worker = "127.0.0.1:" + std::to_string(free_port());
  const auto arguments = [&](const std::string& role) {
    const bool serves = role == "ps";
    return std::vector<std::string>{"transport",
                                    "--net",
                                    "lenet",
                                    "--my-role",
                                    role,
                                    "--my-address",
                                    serves ? server : worker,
                                    "--other-address",
                                    serves ? worker : server,
                                    "--link-rate",
                                    std::to_string(megabits) + "Mbit/s",
                                    "--repeats",
                                    "1",
                                    "--logdir",
                                    folder};
  };
  Program other(arguments("ps"));
  output_of(arguments("worker"));
  other.output();
  const double seconds = number_in(folder + "/transport-ps.json", "down");
  std::filesystem::remove_all(folder);
  return seconds;
}

}  // namespace

Exercise transfer_exercise(PayloadRate* rate, TransferSeconds* seconds) {
  Exercise exercise;
  exercise.folder = "05_transfer";
  exercise.file = "transfer.cpp";
  exercise.check = [=] {
    const auto rates = [=](double bits, double mtu, double expected) {
      return [=] {
        return complaint_of_number(
            "payload_rate", [=] { return rate(bits, mtu); }, expected);
      };
    };
    const auto takes = [=](double parameters, double bits, double mtu, double expected) {
      return [=] {
        return complaint_of_number(
            "transfer_seconds", [=] { return seconds(parameters, bits, mtu); }, expected);
      };
    };
    return check_cases({
        {"the payload of Gigabit Ethernet", rates(1e9, 1500, 1e9 * 1448 / 1538)},
        {"the payload of 100 Mbit/s", rates(1e8, 1500, 1e8 * 1448 / 1538)},
        {"packets of 9000 bytes", rates(1e9, 9000, 1e9 * 8948 / 9038)},
        {"a million parameters at 1 Gbit/s", takes(1e6, 1e9, 1500, 32e6 / (1e9 * 1448 / 1538))},
        {"VGG16E at 10 Gbit/s with packets of 9000 bytes",
         takes(143667240, 1e10, 9000, 32 * 143667240.0 / (1e10 * 8948 / 9038))},
    });
  };
  exercise.known = [] {
    return std::string(
        "LeNet has 431,080 parameters; --link-rate counts payload, so that packets do not matter");
  };
  for (const int megabits : {10, 50, 100})
    exercise.figures.push_back({"seconds_" + std::to_string(megabits),
                                "seconds in which LeNet's weights cross a link with " +
                                    std::to_string(megabits) + " Mbit/s of payload",
                                "On an idle machine it comes within 5 %.",
                                [megabits] { return measured_seconds(megabits); }});
  return exercise;
}

}  // namespace duplex::course
