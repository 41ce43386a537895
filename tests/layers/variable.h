// Sets a variable of the environment for the length of a test.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

namespace duplex::test {

/// A variable of the environment has a value as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* had = std::getenv(name)) had_ = had;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { had_ ? ::setenv(name_, had_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> had_;
};

}  // namespace duplex::test
