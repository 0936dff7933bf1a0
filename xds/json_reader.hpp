// SPDX-License-Identifier: Apache-2.0
//
// JsonReader — reads a JSON object field by field and collects all errors, to report them together.
//
//   JsonReader root(document, "", errors);
//   root.each_object("xds_servers", …, [](const JsonReader& server) { server.string(…); });
//   errors ── "xds_servers[0].server_uri: expected a non-empty string, found number 3"
//
// A reader is a cursor: a value, the path of the value, and the list that errors are added to. For
// a missing or wrong field it returns an empty value, and reading goes on. Errors quote scalars.
// They do not quote objects and lists, which may hold secrets.

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

  /// Reads `value`, which is at the place `path` in the document. `value` and `errors` must outlive
  /// the reader. Precondition: `value` is an object.
  JsonReader(const nlohmann::json& value, std::string path, std::vector<std::string>& errors)
      : value_(value), path_(std::move(path)), errors_(errors) {}

  bool has(const std::string& key) const { return value_.contains(key); }

  std::string string(const std::string& key, Presence presence) const;

  /// The strings of an optional list; elements of other types are left out.
  std::vector<std::string> strings(const std::string& key) const;

  /// Calls `read` with a reader of the object. A missing key is fine; another type is an error.
  void object(const std::string& key, const std::function<void(const JsonReader&)>& read) const;

  /// Calls `read` for every object of a list. A required list must not be empty.
  void each_object(const std::string& key,
                   Presence presence,
                   const std::function<void(const JsonReader&)>& read) const;

  /// Calls `read` for every key of this object. The value of each key must be an object.
  void each_member(const std::function<void(const std::string&, const JsonReader&)>& read) const;

  void error(absl::string_view key, absl::string_view what) const;

  const nlohmann::json& value() const { return value_; }

 private:
  // The value of a key; nullptr if it is missing, which is an error for a required key.
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
