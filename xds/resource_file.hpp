// SPDX-License-Identifier: Apache-2.0
//
// A resource file: the configuration of a server that has no control plane.
//
//   YAML or JSON ─▶ [parse_file_document] ─▶ Document ─▶ [read_resources] ─┬▶ {type URL, name,
//                                                                          │   bytes}, as a server
//                                                                          │   would send them
//                                                                          └▶ places in the file
//   [parse_resources_text] is both, without the places.
//
//   resources:
//     - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
//       name: orders
//       type: EDS
//
// The objects are xDS resources in the API's own JSON names (camelCase or snake_case), with `@type`
// in every Any. YAML may use anchors and aliases. A field that our messages lack is an error, so
// that a misspelt one is seen. The first sixteen errors of a file are told at once, the others are
// counted; each names the file, the line (YAML), the index of the resource and the field. Whether a
// resource makes sense is not judged here but by xds/parse, which judges a server's resources too.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "xds/document.hpp"
#include "xds/limits.hpp"

namespace signalbox::xds {

/// One resource as a control plane would send it: the two fields of an Any, and the name inside.
struct ResourceBytes {
  std::string type_url;
  std::string name;
  std::string bytes;

  bool operator==(const ResourceBytes&) const = default;
};

enum class Format { kJson, kYaml };

/// JSON for a name that ends in `.json`, YAML for every other.
Format format_of(absl::string_view file_name);

struct PlacedResources {
  std::vector<ResourceBytes> resources;
  /// Where each resource stands, as errors say it: "FILE: line 3: resources[0]: ".
  std::vector<std::string> places;
};

/// Any text as a tree of values. RESOURCE_EXHAUSTED: it is beyond max_file_bytes or
/// max_file_values.
absl::StatusOr<Document> parse_file_document(absl::string_view text,
                                             Format format,
                                             absl::string_view file_name,
                                             const Limits& limits = {});

/// The resources of the document in their order. RESOURCE_EXHAUSTED: there are more than
/// max_resources.
absl::StatusOr<PlacedResources> read_resources(const Document& document,
                                               absl::string_view file_name,
                                               const Limits& limits = {});

/// The resources of the text in their order. `file_name` is for the errors only. RESOURCE_EXHAUSTED
/// for what is beyond a limit: max_file_bytes, max_file_values, max_resources.
absl::StatusOr<std::vector<ResourceBytes>> parse_resources_text(absl::string_view text,
                                                                Format format,
                                                                absl::string_view file_name,
                                                                const Limits& limits = {});

}  // namespace signalbox::xds
