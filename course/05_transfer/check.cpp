// Compares with figures that were worked out by hand, and measures by duplex transport.
#include "course/05_transfer/check.h"

#include <future>

#include "course/harness/scalars.h"
#include "course/measuring/program.h"
#include "tools/launch/private_folder.h"

namespace duplex::course {
namespace {

/// Returns the seconds that LeNet's weights take over loopback, where both ends send at most so
/// many megabits of payload a second.
double measured_seconds(int megabits) {
  const tools::PrivateFolder folder("a measurement");
  const std::string server = "127.0.0.1:" + std::to_string(free_port());
  const std::string worker = "127.0.0.1:" + std::to_string(free_port());
  const auto run = [&](const std::string& role, const std::string& mine, const std::string& other) {
    return output_of({"transport", "--net", "lenet", "--my-role", role, "--my-address", mine,
                      "--other-address", other, "--link-rate", std::to_string(megabits) + "Mbit/s",
                      "--repeats", "1", "--logdir", folder.path() + "/run"});
  };
  auto serving = std::async(std::launch::async, [&] { run("ps", server, worker); });
  run("worker", worker, server);
  serving.get();
  return number_in(folder.path() + "/run/transport-ps.json", {"t_comm_s", "down"});
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
