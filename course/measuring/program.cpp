#include "course/measuring/program.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "tools/deploy/call.h"

namespace duplex::course {

std::string duplex_program() {
  const char* named = std::getenv("DUPLEX");
  return named != nullptr ? named : "bin/duplex";
}

std::string output_of(const std::string& program, const std::vector<std::string>& arguments,
                      std::chrono::seconds limit) {
  if (::access(program.c_str(), X_OK) != 0)
    throw Error(program + " is missing, and this exercise runs it: make builds what it needs");
  std::vector<std::string> command{program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::signal(SIGPIPE, SIG_IGN);  // call() asks for that.
  std::atomic<bool> stop{false};
  auto running = std::async(std::launch::async, [&] { return tools::call(command, {}, stop); });
  const bool in_time = running.wait_for(limit) == std::future_status::ready;
  if (!in_time) stop = true;
  const tools::CallResult result = running.get();
  if (!in_time)
    throw Error(program + " " + arguments.at(0) + " did not end within " +
                std::to_string(limit.count()) + " s");
  if (result.code != 0)
    throw Error(program + " " + arguments.at(0) + " failed: " + result.reason());
  return result.out;
}

std::string output_of(const std::vector<std::string>& arguments) {
  return output_of(duplex_program(), arguments);
}

std::vector<double> numbers_of(const std::string& line) {
  std::vector<double> numbers;
  std::stringstream stream(line);
  std::string word;
  while (std::getline(stream, word, ';')) numbers.push_back(std::strtod(word.c_str(), nullptr));
  return numbers;
}

double number_in(const std::string& path, const std::vector<std::string>& names) {
  try {
    std::ifstream file(path);
    nlohmann::json value = nlohmann::json::parse(file);
    for (const std::string& name : names) value = nlohmann::json(value.at(name));
    return value.get<double>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(path + ": " + error.what());
  }
}

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool ok = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!ok) throw Error(std::string("no port of loopback is free: ") + std::strerror(errno));
  return ntohs(address.sin_port);
}

}  // namespace duplex::course
