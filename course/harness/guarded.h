// Memory that is handed to a student's function, and that notices what is written beside it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::course {

/// Values of float32 that end right before a page which nobody may touch; another such page lies
/// before them. Parent and child processes see the same values.
class Guarded {
 public:
  /// All values are `fill` at first. `name` is what the student's function calls it. Throws Error
  /// where the system has no memory.
  Guarded(std::string name, std::size_t count, float fill);
  Guarded(std::string name, const std::vector<float>& values);
  /// Here the values are a copy of `count` integers of as many bytes.
  Guarded(std::string name, const std::int32_t* values, std::size_t count);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  const std::string& name() const { return name_; }
  float* data() { return data_; }
  const float* data() const { return data_; }
  std::size_t count() const { return count_; }
  std::vector<float> values() const { return {data_, data_ + count_}; }

  /// From now on whoever writes to the values gets SIGSEGV.
  void seal();
  /// Returns whether nothing was written into the bytes before the values.
  bool intact() const;
  /// Says where an address lies that is here and may not be touched: "3 elements beyond the end of
  /// x", "in x, which is only to be read"; empty where it lies elsewhere.
  std::string place(const void* address) const;

 private:
  std::string name_;
  std::size_t count_, page_, inner_;  ///< inner_: bytes between the two pages.
  std::byte* mapping_ = nullptr;
  float* data_ = nullptr;
  bool sealed_ = false;
};

}  // namespace duplex::course
