// The keys and columns of the files of a run directory, from their descriptions.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "net/ledger/ledger_row.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/schema.h"

namespace duplex::tools::testing {

using Keys = std::map<std::string, std::string>;  ///< Type by key.

/// Lists the keys of a file as the page names them: "data.path", "layers[].name". A part
/// that has a table of its own on the page is one key.
class KeyLister {
 public:
  explicit KeyLister(Keys& keys, std::string prefix = "")
      : keys_(keys), prefix_(std::move(prefix)) {}

  void version() { keys_[prefix_ + "version"] = "integer"; }
  template <class T>
  void field(const char* key, T& value, Range = Range::any) {
    add(key, value);
  }
  template <class T>
  void later(const char* key, T& value) {
    add(key, value);
  }
  template <class T>
  void optional(const char* key, std::optional<T>& value, Range = Range::any) {
    add(key, value.emplace());
  }
  template <class T>
  void nullable(const char* key, std::optional<T>& value, Range = Range::any) {
    add(key, value.emplace());
  }
  template <class T>
  void unless_zero(const char* key, T& value) {
    add(key, value);
  }
  template <class Enum, class Parse>
  void named(const char* key, Enum&, Parse) {
    keys_[prefix_ + key] = "text";
  }
  template <class T, class Parse>
  void unless_usual(const char* key, T&, Parse) {
    keys_[prefix_ + key] = "text";
  }
  void on_off(const char* key, bool&) { keys_[prefix_ + key] = "text"; }
  template <class T>
  void group(const char*, std::optional<T>& value) {
    describe(*this, value.emplace());
  }
  template <class Body>
  void group(const char*, bool&, Body body) {
    body();
  }

 private:
  template <class T>
  static std::string type_of(const T&) {
    if constexpr (std::is_same_v<T, bool>) return "boolean";
    if constexpr (std::is_integral_v<T>) return "integer";
    if constexpr (std::is_floating_point_v<T>) return "number";
    if constexpr (std::is_same_v<T, std::string>) return "text";
    if constexpr (std::is_same_v<T, Quartiles>) return "quartiles";
    if constexpr (std::is_same_v<T, DirectionTimes>) return "directions";
    return "";
  }
  template <class T>
  void add(const std::string& key, T& value) {
    if (const std::string type = type_of(value); !type.empty()) {
      keys_[prefix_ + key] = type;
    } else if constexpr (IsVector<T>::value) {
      typename T::value_type element{};
      if (const std::string type = type_of(element); !type.empty()) {
        keys_[prefix_ + key] = type + " list";
      } else {
        add_parts(key + "[].", element);
      }
    } else {
      add_parts(key + ".", value);
    }
  }
  template <class T>
  void add_parts(const std::string& prefix, T& value) {
    if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
      KeyLister lister(keys_, prefix_ + prefix);
      describe(lister, value);
    }
  }

  Keys& keys_;
  std::string prefix_;
};

class ColumnLister {
 public:
  explicit ColumnLister(Keys& columns) : columns_(columns) {}
  template <class Integer>
  void integer(const char* name, Integer&) {
    columns_[name] = "integer";
  }
  template <class Number>
  void number(const char* name, Number&) {
    columns_[name] = "number";
  }
  template <class Integer>
  void later(const char* name, Integer&) {
    columns_[name] = "integer";
  }
  void decimals(const char* name, double&, int) { columns_[name] = "number"; }
  void text(const char* name, std::string&) { columns_[name] = "text"; }
  void either(const char* name, bool&, const char*, const char*) { columns_[name] = "text"; }

 private:
  Keys& columns_;
};

template <class File>
Keys keys_of() {
  Keys keys;
  KeyLister lister(keys);
  File file;
  describe(lister, file);
  return keys;
}

template <class Row>
Keys columns_of() {
  Keys columns;
  ColumnLister lister(columns);
  Row row;
  describe(lister, row);
  return columns;
}

}  // namespace duplex::tools::testing
