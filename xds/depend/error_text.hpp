// SPDX-License-Identifier: Apache-2.0
//
// ErrorText — builds the error texts of failed calls: target, resource, reason, node.
//
// Codes of the control plane never reach a call: every status made here is UNAVAILABLE (A74, A88).

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "messages/resource.hpp"

namespace signalbox::xds {

class ErrorText {
 public:
  ErrorText(std::string target, std::string node_id);

  /// `xds:///orders: EDS resource "e": connection refused (node ID: n)`. Without a node ID the
  /// brackets are left out.
  std::string explain(const ResourceKey& key, const absl::Status& error) const;
  std::string explain(absl::string_view reason) const;

  /// `node ID: n`, for error texts that are built elsewhere; empty if the node has no ID.
  std::string node() const;

  absl::Status unavailable(const ResourceKey& key, const absl::Status& error) const;
  absl::Status unavailable(absl::string_view reason) const;

 private:
  std::string target_;
  std::string node_id_;
};

/// Joins the notes by "; ". Empty notes are left out.
std::string join_notes(absl::string_view left, absl::string_view right);

}  // namespace signalbox::xds
