// SPDX-License-Identifier: Apache-2.0
//
// ValidationErrors — collects the errors of one resource, each with the path of its field. The
// first kMaxListedErrors errors are listed; further errors are counted.
//
//   parser ─▶ errors.at("load_assignment").add("must be set") ─▶ status ─▶ NACK
//
// A Field is a place in the resource. Parsers create it as an argument or a local. Its path becomes
// a text only when an error is added. It refers to its parent and to its name, so both must outlive
// it. For that reason at() on a temporary does not compile. A path of several steps is given as one
// name: at("load_assignment.endpoints"). A Field also gives access to the ParseOptions.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "messages/xds_events.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::xds {

class ValidationErrors;

/// One place in a resource. Errors are added at a place.
class Field {
 public:
  /// The field below this one.
  Field at(absl::string_view name) const& { return Field{*errors_, this, name, {}, {}}; }

  /// One element of a repeated field.
  Field at(absl::string_view name, std::size_t index) const& {
    return Field{*errors_, this, name, index, {}};
  }

  /// One entry of a map.
  Field at_key(absl::string_view name, absl::string_view key) const& {
    return Field{*errors_, this, name, {}, key};
  }

  Field at(absl::string_view name) const&& = delete;
  Field at(absl::string_view name, std::size_t index) const&& = delete;
  Field at_key(absl::string_view name, absl::string_view key) const&& = delete;

  /// `what` names the rule and the value found: "must have one entry, found 2".
  void add(absl::string_view what) const;

  /// As add(), for bytes that cannot be decoded.
  void add_undecodable(absl::string_view what) const;

  /// As add(), for a value beyond a limit. The text also gets `limit`, the name of the member of
  /// Limits.
  void add_over_limit(absl::string_view limit, absl::string_view what) const;

  const ParseOptions& options() const;

  /// The path of the field, such as "load_assignment.endpoints[0].locality"; empty for the resource
  /// itself.
  std::string path() const;

  /// Whether to stop reading lists: the resource has too many errors already, or the parsing was
  /// abandoned.
  bool is_enough() const;

  /// The number of errors in the whole resource so far. A caller compares two numbers to find out
  /// whether a callee added an error.
  std::size_t errors_so_far() const;

 private:
  friend class ValidationErrors;

  Field(ValidationErrors& errors,
        const Field* parent,
        absl::string_view name,
        std::optional<std::size_t> index,
        std::optional<absl::string_view> key)
      : errors_(&errors), parent_(parent), name_(name), index_(index), key_(key) {}

  ValidationErrors* errors_;
  const Field* parent_;
  absl::string_view name_;
  std::optional<std::size_t> index_;
  std::optional<absl::string_view> key_;
};

class ValidationErrors {
 public:
  /// `options` must outlive this object.
  explicit ValidationErrors(const ParseOptions& options)
      : options_(&options), top_(*this, nullptr, "", {}, {}) {}

  ValidationErrors(const ValidationErrors&) = delete;
  ValidationErrors& operator=(const ValidationErrors&) = delete;

  /// The Field of the resource itself, with an empty path.
  const Field& top() const { return top_; }

  bool empty() const { return count_ == 0; }

  /// The refused resource, INVALID_ARGUMENT: `CDS resource "orders": first error; second error`.
  ReceivedResource refuse(absl::string_view type, std::string resource_name) const;

 private:
  friend class Field;

  void add(const Field& field, RejectionReason reason, absl::string_view what);

  const ParseOptions* options_;
  Field top_;
  Rejection rejection_;
  std::vector<std::string> listed_;
  std::size_t count_ = 0;
};

/// `"text"` for an error message. Long texts are shortened. Control characters, quotes, backslashes
/// and, in a text that is not UTF-8, all bytes beyond ASCII are escaped.
std::string in_quotes(absl::string_view text);

}  // namespace signalbox::xds
