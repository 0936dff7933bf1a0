// SPDX-License-Identifier: Apache-2.0
//
// resource_file — reads a file of xDS resources, which takes the place of a control plane.
//
//   YAML or JSON ─▶ [parse_file_document] ─▶ Document ─▶ [read_resources] ─┬▶ {type URL, name,
//                                                                          │   bytes}, as a server
//                                                                          │   would send them
//                                                                          └▶ places in the file
//   [parse_resources_text] does both steps, without the places.
//
//   resources:
//     - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
//       name: orders
//       type: EDS
//
// The objects are xDS resources in the API's own JSON names (camelCase or snake_case), with `@type`
// in every Any. YAML may use anchors and aliases. A field that signalbox's messages lack is an
// error, so that misspelt fields are found.
//
// Each resource has at most one error here. The first sixteen errors of a file's resources are
// reported together; further errors are only counted. A reported error names the file, the line
// (YAML), the index of the resource, and the field if one is at fault. xds/parse validates the
// resources later, as it validates the resources of a server.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "xds/document.hpp"
#include "xds/limits.hpp"

namespace signalbox::xds {

/// One resource as a control plane would send it: the two fields of an Any, and the resource's
/// name.
struct ResourceBytes {
  std::string type_url;
  std::string name;
  std::string bytes;

  bool operator==(const ResourceBytes&) const = default;
};

enum class Format { kJson, kYaml };

/// JSON for a name that ends in `.json`, YAML for every other name.
Format format_of(absl::string_view file_name);

struct PlacedResources {
  std::vector<ResourceBytes> resources;
  /// The place of each resource, as the prefix of an error: "FILE: line 3: resources[0]: ".
  std::vector<std::string> places;
};

/// Parses a text into a tree of values. RESOURCE_EXHAUSTED: the text is beyond max_file_bytes or
/// max_file_values.
absl::StatusOr<Document> parse_file_document(absl::string_view text,
                                             Format format,
                                             absl::string_view file_name,
                                             const Limits& limits = {});

/// The resources of the document, in the document's order. RESOURCE_EXHAUSTED: there are more than
/// max_resources.
absl::StatusOr<PlacedResources> read_resources(const Document& document,
                                               absl::string_view file_name,
                                               const Limits& limits = {});

/// The resources of the text, in the text's order. `file_name` is used only in errors.
/// RESOURCE_EXHAUSTED: the text is beyond max_file_bytes, max_file_values or max_resources.
absl::StatusOr<std::vector<ResourceBytes>> parse_resources_text(absl::string_view text,
                                                                Format format,
                                                                absl::string_view file_name,
                                                                const Limits& limits = {});

}  // namespace signalbox::xds
