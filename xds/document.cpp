// SPDX-License-Identifier: Apache-2.0
#include "xds/document.hpp"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "xds/parse/validation_errors.hpp"
#include "xds/utf8.hpp"

namespace signalbox::xds {
namespace {

using nlohmann::json;

std::string at_line(const YAML::Mark& mark) {
  return mark.is_null() ? "" : absl::StrCat("line ", mark.line + 1, ": ");
}

absl::Status too_deep(absl::string_view where) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, "nested deeper than ", kMaxDocumentDepth, " levels"));
}

// The YAML library takes any bytes.
absl::Status not_utf8(absl::string_view text) {
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (is_utf8(line)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("line ", number, ": must be UTF-8, found ", quoted(line)));
  }
  return absl::InvalidArgumentError("must be UTF-8");
}

bool is_within_depth(const json& value, int depth) {
  if (!value.is_structured()) return true;
  if (depth >= kMaxDocumentDepth) return false;
  for (const json& element : value) {
    if (!is_within_depth(element, depth + 1)) return false;
  }
  return true;
}

// The library puts its own identifier in brackets before what it has to say.
absl::string_view without_identifier(absl::string_view what) {
  const auto end = what.find("] ");
  return absl::StartsWith(what, "[") && end != absl::string_view::npos ? what.substr(end + 2)
                                                                       : what;
}

// The libraries quote what they read last, and may stop within a character.
std::string as_utf8(absl::string_view what) {
  return is_utf8(what) ? std::string(what) : absl::CEscape(what);
}

// Hears of documents, and remembers nothing.
class DeafHandler final : public YAML::EventHandler {
 public:
  using Mark = YAML::Mark;
  using Style = YAML::EmitterStyle::value;
  using Text = std::string;

  void OnDocumentStart(const Mark&) override {}

  void OnDocumentEnd() override {}

  void OnNull(const Mark&, YAML::anchor_t) override {}

  void OnAlias(const Mark&, YAML::anchor_t) override {}

  void OnScalar(const Mark&, const Text&, YAML::anchor_t, const Text&) override {}

  void OnSequenceStart(const Mark&, const Text&, YAML::anchor_t, Style) override {}

  void OnSequenceEnd() override {}

  void OnMapStart(const Mark&, const Text&, YAML::anchor_t, Style) override {}

  void OnMapEnd() override {}
};

// At most two: of a comma where none can be yaml-cpp 0.7 makes documents without end, and LoadAll()
// collects them (its issue 1040).
int count_documents(absl::string_view text) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  DeafHandler handler;
  int count = 0;
  while (count < 2 && parser.HandleNextDocument(handler))
    ++count;
  return count;
}

// One text of YAML on its way to JSON.
class YamlConversion {
 public:
  explicit YamlConversion(absl::string_view text)
      : max_values_(std::min(kMaxDocumentValues, kMaxValuesPerByte * text.size())) {}

  absl::StatusOr<json> convert(const YAML::Node& node, int depth) {
    if (depth > kMaxDocumentDepth) return too_deep(at_line(node.Mark()));
    if (++values_ > max_values_) {
      return absl::InvalidArgumentError(
          absl::StrCat(at_line(node.Mark()), "more than ", max_values_, " values"));
    }
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return scalar(node);
      case YAML::NodeType::Sequence:
        return sequence(node, depth);
      case YAML::NodeType::Map:
        return map(node, depth);
      case YAML::NodeType::Null:
      case YAML::NodeType::Undefined:
        break;
    }
    return json(nullptr);
  }

 private:
  static json scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() == "!") return text;  // Quoted.
    if (text.empty() || text == "~" || text == "null") return nullptr;
    if (text == "true" || text == "false") return text == "true";
    const bool may_be_number = absl::ascii_isdigit(text.front()) || text.front() == '-';
    if (may_be_number && json::accept(text)) return json::parse(text);
    return text;
  }

  absl::StatusOr<json> sequence(const YAML::Node& node, int depth) {
    json list = json::array();
    for (const YAML::Node& element : node) {
      auto value = convert(element, depth + 1);
      if (!value.ok()) return value.status();
      list.push_back(*std::move(value));
    }
    return list;
  }

  absl::StatusOr<json> map(const YAML::Node& node, int depth) {
    json object = json::object();
    for (const auto& entry : node) {
      const YAML::Node& key = entry.first;
      if (!key.IsScalar()) {
        return absl::InvalidArgumentError(absl::StrCat(at_line(key.Mark()), "a key is no string"));
      }
      auto value = convert(entry.second, depth + 1);
      if (!value.ok()) return value.status();
      if (!object.emplace(key.Scalar(), *std::move(value)).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(at_line(key.Mark()), "key \"", key.Scalar(), "\" occurs twice"));
      }
    }
    return object;
  }

  std::size_t max_values_;
  std::size_t values_ = 0;
};

std::map<std::string, std::vector<int>> lines_of_lists(const YAML::Node& root) {
  std::map<std::string, std::vector<int>> lines;
  if (!root.IsMap()) return lines;
  for (const auto& entry : root) {
    if (!entry.second.IsSequence()) continue;
    for (const YAML::Node& element : entry.second) {
      lines[entry.first.Scalar()].push_back(element.Mark().line + 1);
    }
  }
  return lines;
}

}  // namespace

absl::StatusOr<Document> parse_json_document(absl::string_view text) {
  try {
    Document document;
    document.root = json::parse(text.begin(), text.end());
    if (!is_within_depth(document.root, 0)) return too_deep("");
    return document;
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(as_utf8(without_identifier(error.what())));
  }
}

absl::StatusOr<Document> parse_yaml_document(absl::string_view text) {
  if (!is_utf8(text)) return not_utf8(text);
  try {
    const int documents = count_documents(text);
    if (documents != 1) {
      return absl::InvalidArgumentError(absl::StrCat("expected one YAML document, found ",
                                                     documents == 0 ? "0" : "more than one"));
    }
    const YAML::Node document = YAML::Load(std::string(text));
    auto root = YamlConversion(text).convert(document, 0);
    if (!root.ok()) return root.status();
    return Document{*std::move(root), lines_of_lists(document)};
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(at_line(error.mark), as_utf8(error.msg)));
  }
}

}  // namespace signalbox::xds
