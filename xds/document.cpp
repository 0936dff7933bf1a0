// SPDX-License-Identifier: Apache-2.0
#include "xds/document.hpp"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
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

absl::Status too_many(std::size_t max_values) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "must have at most ", max_values, " values, found more (limit max_file_values)"));
}

absl::Status too_deep(absl::string_view where) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, "nested deeper than ", kMaxDocumentDepth, " levels"));
}

// The error for the first line that is not UTF-8. The YAML library itself accepts such bytes.
absl::Status not_utf8(absl::string_view text) {
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (is_utf8(line)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("line ", number, ": must be UTF-8, found ", in_quotes(line)));
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

// Removes the identifier in brackets that begins each error text of nlohmann::json.
absl::string_view without_identifier(absl::string_view what) {
  const auto end = what.find("] ");
  return absl::StartsWith(what, "[") && end != absl::string_view::npos ? what.substr(end + 2)
                                                                       : what;
}

// Counts the values of a JSON text without building them. A callback returns false, which ends the
// parsing, if there are too many values or if the text is not JSON. The real parser then reports
// text that is not JSON.
class JsonCounter final : public nlohmann::json_sax<json> {
 public:
  explicit JsonCounter(std::size_t most) : most_(most) {}

  bool is_beyond() const { return count_ > most_; }

  bool null() override { return count(); }

  bool boolean(bool) override { return count(); }

  bool number_integer(number_integer_t) override { return count(); }

  bool number_unsigned(number_unsigned_t) override { return count(); }

  bool number_float(number_float_t, const string_t&) override { return count(); }

  bool string(string_t&) override { return count(); }

  bool binary(binary_t&) override { return count(); }

  bool start_object(std::size_t) override { return count(); }

  bool key(string_t&) override { return true; }

  bool end_object() override { return true; }

  bool start_array(std::size_t) override { return count(); }

  bool end_array() override { return true; }

  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  bool count() { return ++count_ <= most_; }

  const std::size_t most_;
  std::size_t count_ = 0;
};

// Counts the values of YAML documents without storing them. If there are too many values, it skips
// the rest of the input, because yaml-cpp has no function that stops its parser.
class CountingHandler final : public YAML::EventHandler {
 public:
  using Mark = YAML::Mark;
  using Style = YAML::EmitterStyle::value;
  using Text = std::string;

  CountingHandler(std::istringstream& text, std::size_t most) : text_(text), most_(most) {}

  bool is_beyond() const { return count_ > most_; }

  void OnDocumentStart(const Mark&) override {}

  void OnDocumentEnd() override {}

  void OnNull(const Mark&, YAML::anchor_t) override { add_node(); }

  void OnAlias(const Mark&, YAML::anchor_t) override { add_node(); }

  void OnScalar(const Mark&, const Text&, YAML::anchor_t, const Text&) override { add_node(); }

  void OnSequenceStart(const Mark&, const Text&, YAML::anchor_t, Style) override {
    add_node();
    open_.push_back(Next::kElement);
  }

  void OnSequenceEnd() override { close(); }

  void OnMapStart(const Mark&, const Text&, YAML::anchor_t, Style) override {
    add_node();
    open_.push_back(Next::kKey);
  }

  void OnMapEnd() override { close(); }

 private:
  // The kind of the next node in a list or a map.
  enum class Next : std::uint8_t { kElement, kKey, kValue };

  // Keys of maps do not count as values.
  void add_node() {
    if (!open_.empty() && open_.back() == Next::kKey) {
      open_.back() = Next::kValue;
      return;
    }
    if (!open_.empty() && open_.back() == Next::kValue) open_.back() = Next::kKey;
    if (++count_ > most_) text_.rdbuf()->pubseekoff(0, std::ios::end, std::ios::in);
  }

  void close() {
    if (!open_.empty()) open_.pop_back();
  }

  std::istringstream& text_;
  const std::size_t most_;
  std::vector<Next> open_;
  std::size_t count_ = 0;
};

struct YamlCount {
  int documents = 0;
  bool is_beyond = false;  ///< There are more values than allowed.
};

// Counts at most two documents. For a misplaced comma yaml-cpp 0.7 produces an endless number of
// documents, and LoadAll() would store them all (yaml-cpp issue 1040).
YamlCount count_documents(absl::string_view text, std::size_t max_values) {
  std::istringstream stream{std::string(text)};
  CountingHandler handler(stream, max_values);
  YamlCount count;
  YAML::Parser parser(stream);
  try {
    while (count.documents < 2 && !handler.is_beyond() && parser.HandleNextDocument(handler))
      ++count.documents;
  } catch (const YAML::Exception&) {
    // Load() reports the error of the first document, unless the handler has skipped the input.
    ++count.documents;
  }
  count.is_beyond = handler.is_beyond();
  return count;
}

// Converts one YAML text to JSON.
class YamlConversion {
 public:
  YamlConversion(absl::string_view text, std::size_t max_values)
      : max_values_(std::min(max_values, kMaxValuesPerByte * text.size())),
        is_limit_(max_values_ == max_values) {}

  absl::StatusOr<json> convert(const YAML::Node& node, int depth) {
    // Only lists and maps are levels, as in JSON.
    if (depth >= kMaxDocumentDepth && (node.IsSequence() || node.IsMap()))
      return too_deep(at_line(node.Mark()));
    if (++values_ > max_values_) {
      if (is_limit_) return too_many(max_values_);
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
    if (node.Tag() == "!") return text;  // A quoted scalar is a string.
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
  bool is_limit_;  ///< True: max_values_ is the caller's limit. False: the text's size gave it.
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

absl::StatusOr<Document> parse_json_document(absl::string_view text, std::size_t max_values) {
  try {
    JsonCounter counter(max_values);
    (void)json::sax_parse(text.begin(), text.end(), &counter);
    if (counter.is_beyond()) return too_many(max_values);
    Document document;
    document.root = json::parse(text.begin(), text.end());
    if (!is_within_depth(document.root, 0)) return too_deep("");
    return document;
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(as_utf8(without_identifier(error.what())));
  }
}

absl::StatusOr<Document> parse_yaml_document(absl::string_view text, std::size_t max_values) {
  if (!is_utf8(text)) return not_utf8(text);
  try {
    const auto [documents, is_beyond] = count_documents(text, max_values);
    if (is_beyond) return too_many(max_values);
    if (documents != 1) {
      return absl::InvalidArgumentError(absl::StrCat("expected one YAML document, found ",
                                                     documents == 0 ? "0" : "more than one"));
    }
    const YAML::Node document = YAML::Load(std::string(text));
    auto root = YamlConversion(text, max_values).convert(document, 0);
    if (!root.ok()) return root.status();
    return Document{*std::move(root), lines_of_lists(document)};
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(at_line(error.mark), as_utf8(error.msg)));
  }
}

}  // namespace signalbox::xds
