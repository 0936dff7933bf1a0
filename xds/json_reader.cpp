// SPDX-License-Identifier: Apache-2.0
#include "xds/json_reader.hpp"

#include "absl/strings/str_cat.h"

#include "xds/utf8.hpp"

namespace signalbox::xds {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxQuoted = 60;

std::string described(const json* found) {
  if (found == nullptr) return "nothing";
  if (found->is_structured()) return found->is_array() ? "a list" : "an object";
  if (found->is_null()) return "null";
  const std::string text = found->dump(-1, ' ', false, json::error_handler_t::replace);
  const absl::string_view shown = utf8_prefix(text, kMaxQuoted);
  const char* rest = shown.size() < text.size() ? "…" : "";
  return absl::StrCat(found->type_name(), " ", shown, rest);
}

}  // namespace

std::string JsonReader::string(const std::string& key, Presence presence) const {
  const json* found = find(key, presence, "a string");
  if (found == nullptr) return "";
  if (found->is_string() && (presence == Presence::kOptional || *found != "")) return *found;
  expected(key, presence == Presence::kOptional ? "a string" : "a non-empty string", found);
  return "";
}

std::vector<std::string> JsonReader::strings(const std::string& key) const {
  const json* found = find(key, Presence::kOptional, "a list of strings");
  if (found == nullptr) return {};
  if (!found->is_array()) {
    expected(key, "a list of strings", found);
    return {};
  }
  std::vector<std::string> strings;
  for (const json& element : *found) {
    if (element.is_string()) strings.push_back(element);
  }
  return strings;
}

void JsonReader::object(const std::string& key,
                        const std::function<void(const JsonReader&)>& read) const {
  const json* found = find(key, Presence::kOptional, "an object");
  if (found == nullptr) return;
  if (!found->is_object()) return expected(key, "an object", found);
  read(JsonReader(*found, path_of(key), errors_));
}

void JsonReader::each_object(const std::string& key,
                             Presence presence,
                             const std::function<void(const JsonReader&)>& read) const {
  const json* found = find(key, presence, "a list of objects");
  if (found == nullptr) return;
  if (!found->is_array()) return expected(key, "a list of objects", found);
  if (found->empty() && presence == Presence::kRequired) {
    return error(key, "expected at least one element, found an empty list");
  }
  std::size_t index = 0;
  for (const json& element : *found) {
    const std::string place = absl::StrCat(key, "[", index++, "]");
    if (element.is_object()) {
      read(JsonReader(element, path_of(place), errors_));
    } else {
      expected(place, "an object", &element);
    }
  }
}

void JsonReader::each_member(
    const std::function<void(const std::string&, const JsonReader&)>& read) const {
  for (const auto& [key, element] : value_.items()) {
    if (element.is_object()) {
      read(key, JsonReader(element, path_of(absl::StrCat("\"", key, "\"")), errors_));
    } else {
      expected(absl::StrCat("\"", key, "\""), "an object", &element);
    }
  }
}

void JsonReader::error(absl::string_view key, absl::string_view what) const {
  errors_.push_back(absl::StrCat(path_of(key), ": ", what));
}

const json* JsonReader::find(const std::string& key,
                             Presence presence,
                             absl::string_view kind) const {
  const auto found = value_.find(key);
  if (found != value_.end()) return &*found;
  if (presence == Presence::kRequired) expected(key, kind, nullptr);
  return nullptr;
}

void JsonReader::expected(const std::string& key, absl::string_view kind, const json* found) const {
  error(key, absl::StrCat("expected ", kind, ", found ", described(found)));
}

std::string JsonReader::path_of(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

}  // namespace signalbox::xds
