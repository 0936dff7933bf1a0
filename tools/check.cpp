// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <nlohmann/json.hpp>

#include "actors/io/watched_file.hpp"
#include "tools/commands.hpp"
#include "xds/bootstrap.hpp"
#include "xds/document.hpp"
#include "xds/lint/lint.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"

namespace signalbox::tools {
namespace {

struct FileText {
  std::string name;
  std::string text;
  absl::StatusOr<xds::Document> document;  // The parsed text; an error names the file.
};

struct Finding {
  std::string file;
  std::string kind = "unknown";  // "bootstrap" or "resources".
  std::string summary;           // The content of a valid file: "3 resources".
  std::vector<std::string> errors;
  std::vector<std::string> warnings;  // Probable mistakes; empty for an invalid file.
};

std::string counted(std::size_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// Reads the settings of the environment, as a runtime does. Configurations of custom policies and
// filters cannot be checked: only the program that registers them knows their form.
xds::ParseOptions parse_options(const CheckOptions& asked) {
  auto options = xds::parse_options_from([](const char* name) { return std::getenv(name); });
  options.limits = asked.limits;
  xds::CustomPolicyParsers custom;
  for (const std::string& name : asked.lb_policies)
    custom.emplace(name, nullptr);
  options.custom_lb_policies = std::make_shared<const xds::CustomPolicyParsers>(std::move(custom));
  xds::CustomFilters filters;
  for (const std::string& type : asked.http_filters)
    filters.emplace(type, xds::CustomFilterParsers{nullptr, type, nullptr});
  options.custom_http_filters = std::make_shared<const xds::CustomFilters>(std::move(filters));
  return options;
}

// Clusters may name the certificate providers of a bootstrap that is checked in the same run. A
// text that is no valid bootstrap adds no provider.
void add_certificate_providers(const std::string& text, xds::ParseOptions& options) {
  const auto bootstrap = xds::parse_bootstrap(text, "");
  if (!bootstrap.ok()) return;
  for (const auto& [name, files] : bootstrap->certificate_providers)
    options.certificate_providers.insert(name);
}

void check_resources(const xds::Document& document,
                     const xds::ParseOptions& options,
                     Finding& finding) {
  finding.kind = "resources";
  const auto read = xds::read_resources(document, finding.file, options.limits);
  if (!read.ok()) {
    // read_resources() joins its errors into one text, each with the file's name first. Split them,
    // so that each error gets a line.
    const std::string file = absl::StrCat(finding.file, ": ");
    const auto message = absl::StripPrefix(read.status().message(), file);
    for (const absl::string_view error : absl::StrSplit(message, absl::StrCat("; ", file)))
      finding.errors.push_back(absl::StrCat(file, error));
    return;
  }
  for (const auto& resource : read->resources) {
    // The type is known: read_resources() has refused files with other types.
    const auto parsed = xds::parse_resource(
        *xds::resource_type_of(resource.type_url), resource.type_url, resource.bytes, options);
    if (parsed.resource.ok()) continue;
    // The message names the resource.
    finding.errors.push_back(absl::StrCat(finding.file, ": ", parsed.resource.status().message()));
  }
  finding.summary = counted(read->resources.size(), "resource");
  if (!finding.errors.empty()) return;
  for (const xds::LintWarning& warning : xds::lint(read->resources))
    finding.warnings.push_back(absl::StrCat(read->places[warning.resource], warning.text));
}

void check_bootstrap(const std::string& text, Finding& finding) {
  finding.kind = "bootstrap";
  const auto bootstrap = xds::parse_bootstrap(text, finding.file);
  if (!bootstrap.ok()) {
    finding.errors.emplace_back(bootstrap.status().message());
    return;
  }
  finding.summary = absl::StrCat(
      bootstrap->resources_file ? "a resource file" : counted(bootstrap->servers.size(), "server"),
      ", node \"",
      bootstrap->node.id,
      "\"");
}

// A file of resources has the list "resources"; every other JSON file counts as a bootstrap.
bool is_of_resources(const xds::Document& document) {
  return document.root.is_object() && document.root.contains("resources");
}

Finding check_file(const FileText& file, const xds::ParseOptions& options) {
  Finding finding;
  finding.file = file.name;
  if (!file.document.ok()) {
    finding.errors.emplace_back(file.document.status().message());
  } else if (is_of_resources(*file.document)) {
    check_resources(*file.document, options, finding);
  } else if (xds::format_of(file.name) == xds::Format::kJson) {
    check_bootstrap(file.text, finding);
  } else {
    finding.errors.push_back(absl::StrCat(
        file.name,
        ": neither a file of resources (the list \"resources\") nor a bootstrap (JSON)"));
  }
  return finding;
}

void print(const std::vector<Finding>& findings, bool as_json) {
  nlohmann::json data = nlohmann::json::array();
  for (const Finding& finding : findings) {
    if (as_json) {
      data.push_back({{"file", finding.file},
                      {"kind", finding.kind},
                      {"ok", finding.errors.empty()},
                      {"errors", finding.errors},
                      {"warnings", finding.warnings}});
      continue;
    }
    for (const std::string& error : finding.errors)
      std::cout << error << "\n";
    for (const std::string& warning : finding.warnings)
      std::cout << "warning: " << warning << "\n";
    if (finding.errors.empty()) {
      std::cout << finding.file << ": ok: " << finding.kind << ", " << finding.summary;
      if (!finding.warnings.empty())
        std::cout << ", " << counted(finding.warnings.size(), "warning");
      std::cout << "\n";
    }
  }
  if (!as_json) return;
  // File names need not be UTF-8: dump() would throw.
  std::cout << nlohmann::json{{"files", data}}.dump(
                   2, ' ', false, nlohmann::json::error_handler_t::replace)
            << "\n";
}

}  // namespace

int run_check(const CheckOptions& options) {
  std::vector<FileText> files;
  xds::ParseOptions parsing = parse_options(options);
  bool readable = true;
  bool valid = true;
  for (const std::string& name : options.files) {
    auto text = actors::read_file(name, parsing.limits.max_file_bytes, "max_file_bytes");
    if (!text.ok()) {
      readable = false;
      say("check", text.status().message());
      continue;
    }
    auto document = xds::parse_file_document(*text, xds::format_of(name), name, parsing.limits);
    if (document.ok() && !is_of_resources(*document)) add_certificate_providers(*text, parsing);
    files.push_back({name, *std::move(text), std::move(document)});
  }
  std::vector<Finding> findings;
  for (const FileText& file : files) {
    findings.push_back(check_file(file, parsing));
    valid = valid && findings.back().errors.empty();
  }
  print(findings, options.json);
  if (!readable) return kExitUsage;
  return valid ? kExitOk : kExitFailed;
}

}  // namespace signalbox::tools
