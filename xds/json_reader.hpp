// SPDX-License-Identifier: Apache-2.0
//
// Reads a JSON object field by field and collects what is wrong, so that all of it is seen at once.
//
//   JsonReader root(document, "", errors);
//   root.each_object("xds_servers", …, [](const JsonReader& server) { server.string(…); });
//   errors ── "xds_servers[0].server_uri: expected a string, found number 3"
//
// A reader is a cursor: a value, the path that leads to it, and the list that it adds errors to.
// Where a field is missing or wrong, an empty value is returned and reading goes on. Scalars are
// quoted in errors; objects and lists, which may hold secrets, are not.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

namespace signalbox::xds {

class JsonReader {
 public:
  enum class Presence { kRequired, kOptional };

  /// Both must outlive the reader. Precondition: `value` is an object.
  JsonReader(const nlohmann::json& value, std::string path, std::vector<std::string>& errors)
      : value_(value), path_(std::move(path)), errors_(errors) {}

  bool has(const std::string& key) const { return value_.contains(key); }

  std::string string(const std::string& key, Presence presence) const;

  /// The strings of an optional list; whatever else is in it is left out.
  std::vector<std::string> strings(const std::string& key) const;

  /// Calls with a reader of the object, if it is there and one.
  void object(const std::string& key, const std::function<void(const JsonReader&)>& read) const;

  /// Calls with a reader of every object in a list. An empty list counts as missing.
  void each_object(const std::string& key,
                   Presence presence,
                   const std::function<void(const JsonReader&)>& read) const;

  /// Calls with every key of this object and a reader of its value, which must be an object.
  void each_member(const std::function<void(const std::string&, const JsonReader&)>& read) const;

  void error(absl::string_view key, absl::string_view what) const;

  const nlohmann::json& value() const { return value_; }

 private:
  // The value of a key; nullptr, and an error where it is required, if it is missing.
  const nlohmann::json* find(const std::string& key,
                             Presence presence,
                             absl::string_view kind) const;
  void expected(const std::string& key, absl::string_view kind, const nlohmann::json* found) const;
  std::string path_of(absl::string_view key) const;

  const nlohmann::json& value_;
  std::string path_;
  std::vector<std::string>& errors_;
};

}  // namespace signalbox::xds
