// The JSON files of a run directory, field by field. A file is described once, by a function over
// any of these classes, so that what is written is what is read (tools/run_directory/schema.h):
//   template <class Fields> void describe(Fields& f, Run& r) { f.field("steps", r.steps); ... }
// tests/tools/run_directory_test.cpp has a third class, which lists the keys.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"

namespace duplex::tools {

/// The version that this program writes into its files, and the only one that it reads.
constexpr int run_files_version = 1;

/// The numbers that a key may have.
enum class Range { any, not_negative };

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

class JsonWriter {
 public:
  using Json = nlohmann::ordered_json;

  void version() { json_["version"] = run_files_version; }
  /// Every version has written it, and it must be there.
  template <class T>
  void field(const char* key, T& value, Range = Range::any) {
    json_[key] = json_of(value);
  }
  /// Is written always; where it is missing, what the struct holds stays.
  template <class T>
  void later(const char* key, T& value) {
    json_[key] = json_of(value);
  }
  /// Is written where there is a value. Missing or null: none.
  template <class T>
  void optional(const char* key, std::optional<T>& value, Range = Range::any) {
    if (value) json_[key] = json_of(*value);
  }
  /// Is written always, null for none. Missing or null: none.
  template <class T>
  void nullable(const char* key, std::optional<T>& value, Range = Range::any) {
    json_[key] = value ? json_of(*value) : Json();
  }
  /// Is written where it is not zero or false, which is what a missing one means.
  template <class T>
  void unless_zero(const char* key, T& value) {
    if (value != T{}) json_[key] = json_of(value);
  }
  /// One of the names that `name_of` gives and `parse` takes.
  template <class Enum, class Parse>
  void named(const char* key, Enum& value, Parse) {
    json_[key] = name_of(value);
  }
  /// Text that `parse` takes and str() gives; is not written where the value is that of a new one.
  template <class T, class Parse>
  void unless_usual(const char* key, T& value, Parse) {
    if (!(value == T())) json_[key] = value.str();
  }
  /// "on" or "off".
  void on_off(const char* key, bool& value) { json_[key] = value ? "on" : "off"; }
  /// Keys beside the others that are there together or not at all, and are where `marker`, one of
  /// them, is.
  template <class T>
  void group(const char* marker, std::optional<T>& value) {
    (void)marker;
    if (value) describe(*this, *value);
  }
  template <class Body>
  void group(const char* marker, bool& there, Body body) {
    (void)marker;
    if (there) body();
  }

  Json take() { return std::move(json_); }

 private:
  template <class T>
  static Json json_of(T& value) {
    if constexpr (IsVector<T>::value) {
      Json list = Json::array();
      for (auto& each : value) list.push_back(json_of(each));
      return list;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      JsonWriter writer;
      describe(writer, value);
      return writer.take();
    }
  }

  Json json_ = Json::object();
};

/// Ignores keys that nobody asks for. Throws Error, saying which key, where one is missing that
/// must be there or a value is not of its type.
class JsonReader {
 public:
  using Json = nlohmann::json;

  /// `name`: of the object, "" for the whole file. `json` must outlive it.
  explicit JsonReader(const Json& json, std::string name = "")
      : json_(json), name_(std::move(name)) {
    if (!json_.is_object()) refuse(name_, "is no object");
  }

  void version() {
    int version = 0;
    field("version", version);
    if (version != run_files_version) throw Error("is of another version of duplex");
  }
  template <class T>
  void field(const char* key, T& value, Range range = Range::any) {
    const Json* found = find(key);
    if (found == nullptr) throw Error("is damaged: it has no " + full(key));
    read(*found, full(key), value, range);
  }
  template <class T>
  void later(const char* key, T& value) {
    if (const Json* found = find(key)) read(*found, full(key), value, Range::any);
  }
  template <class T>
  void optional(const char* key, std::optional<T>& value, Range range = Range::any) {
    value.reset();
    const Json* found = find(key);
    if (found != nullptr && !found->is_null()) read(*found, full(key), value.emplace(), range);
  }
  template <class T>
  void nullable(const char* key, std::optional<T>& value, Range range = Range::any) {
    optional(key, value, range);
  }
  template <class T>
  void unless_zero(const char* key, T& value) {
    value = T{};
    later(key, value);
  }
  template <class Enum, class Parse>
  void named(const char* key, Enum& value, Parse parse) {
    std::string name;
    field(key, name);
    try {
      value = parse(name);
    } catch (const Error& error) {
      refuse(full(key), "is '" + name + "': " + error.what());
    }
  }
  template <class T, class Parse>
  void unless_usual(const char* key, T& value, Parse parse) {
    std::optional<std::string> text;
    optional(key, text);
    value = T();
    if (!text) return;
    try {
      value = parse(*text);
    } catch (const Error& error) {
      refuse(full(key), std::string("is no such text: ") + error.what());
    }
  }
  void on_off(const char* key, bool& value) {
    std::string word;
    field(key, word);
    value = word == "on";
    if (!value && word != "off") refuse(full(key), "is neither on nor off");
  }
  template <class T>
  void group(const char* marker, std::optional<T>& value) {
    value.reset();
    if (find(marker) != nullptr) describe(*this, value.emplace());
  }
  template <class Body>
  void group(const char* marker, bool& there, Body body) {
    there = find(marker) != nullptr;
    if (there) body();
  }

 private:
  std::string full(const std::string& key) const { return name_.empty() ? key : name_ + "." + key; }
  [[noreturn]] static void refuse(const std::string& key, const std::string& why) {
    throw Error("is damaged: " + (key.empty() ? "it" : key) + " " + why);
  }
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  template <class T>
  static void read(const Json& json, const std::string& name, T& value, Range range) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) refuse(name, "is neither true nor false");
      value = json.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      value = integer<T>(json, name);
    } else if constexpr (std::is_floating_point_v<T>) {
      // JSON knows no NaN: null is written for it.
      if (!json.is_number() && !json.is_null()) refuse(name, "is no number");
      value = json.is_null() ? std::numeric_limits<T>::quiet_NaN() : json.get<T>();
      if (range == Range::not_negative && value < 0) refuse(name, "is below zero");
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) refuse(name, "is no text");
      value = json.get<std::string>();
    } else if constexpr (IsVector<T>::value) {
      if (!json.is_array()) refuse(name, "is no list");
      value.clear();
      for (const Json& each : json) {
        const std::string number = "[" + std::to_string(value.size()) + "]";
        read(each, name + number, value.emplace_back(), range);
      }
    } else {
      JsonReader reader(json, name);
      describe(reader, value);
    }
  }

  template <class T>
  static T integer(const Json& json, const std::string& name) {
    if (json.is_number_unsigned()) {
      const auto number = json.get<std::uint64_t>();
      if (number <= static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
        return static_cast<T>(number);
    } else if (json.is_number_integer()) {  // It is negative.
      const auto number = json.get<std::int64_t>();
      if (std::is_signed_v<T> && number >= static_cast<std::int64_t>(std::numeric_limits<T>::min()))
        return static_cast<T>(number);
    }
    refuse(name, "is no integer of its size");
  }

  const Json& json_;
  const std::string name_;
};

}  // namespace duplex::tools
