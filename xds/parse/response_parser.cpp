// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/response_parser.hpp"

#include <utility>

#include "absl/strings/str_cat.h"

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/limits.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"
#include "xds/utf8.hpp"
#include "xds/wire.hpp"

namespace signalbox::xds {
namespace {

using envoy::service::discovery::v3::DiscoveryResponse;

// The fixed cost of each resource, in bytes, that counts towards the size of a part.
constexpr std::size_t kEntrySize = 512;
// Fields of the envelope that are read between two checks of ParseOptions::abandoned.
constexpr std::size_t kFieldsBetweenLooks = 4096;

void count(const Rejection& rejection, ResourcesReceived& received) {
  ++received.rejected.at(static_cast<std::size_t>(rejection.reason));
}

}  // namespace

ResponseParser::ResponseParser(absl::string_view bytes,
                               ParseOptions options,
                               KnownResources* known,
                               std::size_t part_size)
    : bytes_(bytes), options_(std::move(options)), known_(known), part_size_(part_size) {}

std::optional<absl::StatusOr<DecodedResponse>> ResponseParser::go_on() {
  if (!std::exchange(begun_, true)) {
    absl::Status status = begin();
    if (is_abandoned(options_)) return std::nullopt;
    if (!status.ok()) return status;
  }
  for (std::size_t done = 0; next_ < entries_.size() && done < part_size_; ++next_) {
    if (is_abandoned(options_)) return std::nullopt;
    done += kEntrySize + entries_[next_].value.size();
    parse(next_);
  }
  if (next_ < entries_.size() || is_abandoned(options_)) return std::nullopt;
  return take();
}

// --- the envelope -----------------------------------------------------------

absl::Status ResponseParser::begin() {
  const Limits& limits = options_.limits;
  if (bytes_.size() > limits.max_message_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the server's message must not be longer than ",
                     limits.max_message_bytes,
                     " bytes, found ",
                     bytes_.size(),
                     " (limit max_message_bytes)"));
  }
  if (absl::Status status = read_envelope(); !status.ok()) return status;
  if (known_ != nullptr) known_->parse_with(options_);
  const ResourceType type = response_.received.type;
  budget_.emplace(limits, known_ != nullptr ? known_->patterns(type) : RegexBudget::Patterns());
  options_.regexes = &budget_->regexes;
  return absl::OkStatus();
}

absl::Status ResponseParser::undecodable_response() const {
  return absl::InvalidArgumentError(absl::StrCat(
      "the server's message ",
      why_undecodable("a DiscoveryResponse", bytes_, *DiscoveryResponse::descriptor())));
}

// Reads all fields of the response, but decodes no resource. Resources beyond max_resources are
// only counted (P1).
absl::Status ResponseParser::read_envelope() {
  absl::string_view type_url;
  WireReader reader(bytes_);
  std::size_t fields = 0;
  while (const auto value = reader.next()) {
    if (++fields % kFieldsBetweenLooks == 0 && is_abandoned(options_)) break;
    if (!value->content || value->in_group) continue;
    switch (value->field) {
      case DiscoveryResponse::kVersionInfoFieldNumber:
        if (!is_utf8(*value->content)) return undecodable_response();
        response_.received.version = std::string(*value->content);
        break;
      case DiscoveryResponse::kTypeUrlFieldNumber:
        if (!is_utf8(*value->content)) return undecodable_response();
        type_url = *value->content;
        break;
      case DiscoveryResponse::kNonceFieldNumber:
        if (!is_utf8(*value->content)) return undecodable_response();
        response_.nonce = std::string(*value->content);
        break;
      case DiscoveryResponse::kResourcesFieldNumber: {
        if (entry_count_++ >= options_.limits.max_resources) break;
        const auto any = read_any(*value->content);
        if (!any) return undecodable_response();
        entries_.push_back(*any);
        break;
      }
      case DiscoveryResponse::kResourceErrorsFieldNumber:
        if (errors_.size() < options_.limits.max_resources) errors_.push_back(*value->content);
        break;
      default:
        break;
    }
  }
  if (!reader.is_whole()) return undecodable_response();
  const auto type = resource_type_of(type_url);
  if (!type.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat("a DiscoveryResponse must be of a type that was asked for, found type_url ",
                     in_quotes(type_url)));
  }
  response_.received.type = *type;
  for (const absl::string_view error : errors_)
    read_error(error);
  return absl::OkStatus();
}

// Ignores errors that cannot be decoded, are too large, have no name, or have the code OK.
void ResponseParser::read_error(absl::string_view bytes) {
  constexpr std::size_t kMostMemory = std::size_t{4} << 20U;
  envoy::service::discovery::v3::ResourceError error;
  const bool is_heavy = may_outweigh(bytes, kMostMemory) &&
                        weigh(bytes, *error.GetDescriptor(), kMostMemory) > kMostMemory;
  if (is_heavy || !decode(bytes, error)) return;
  const auto code = static_cast<absl::StatusCode>(error.error_detail().code());
  absl::Status status(code, utf8_prefix(error.error_detail().message(), kMaxResourceErrorLength));
  if (error.resource_name().name().empty() || status.ok()) return;
  response_.received.resource_errors.push_back({error.resource_name().name(), std::move(status)});
}

// --- resources --------------------------------------------------------------

void ResponseParser::parse(std::size_t index) {
  ReceivedResource resource = parse_entry(entries_[index], index);
  if (resource.rejection.has_value()) count(*resource.rejection, response_.received);
  if (resource.name.empty())
    add_unnamed(absl::StrCat("resources[", index, "]: ", resource.resource.status().message()));
  else
    add(std::move(resource));
}

// Parses one resource. A cluster beyond max_clusters is refused, and only its name is read (P2).
ReceivedResource ResponseParser::parse_entry(const AnyView& any, std::size_t index) {
  const ResourceType type = response_.received.type;
  const std::size_t most = options_.limits.max_clusters;
  if (type != ResourceType::kCluster || index < most)
    return parse_resource(type, any.type_url, any.value, options_, known_, &*budget_);
  return refuse_unread(
      type,
      any,
      options_.limits,
      "max_clusters",
      absl::StrCat("a response must have at most ", most, " clusters, found ", entry_count_));
}

// Adds a parsed resource. If two resources have the same name, neither is used, because the
// intended one is unknown.
void ResponseParser::add(ReceivedResource resource) {
  ResourcesReceived& received = response_.received;
  const auto [place, is_new] = places_.emplace(resource.name, received.resources.size());
  if (is_new) {
    shorten(resource);
    received.resources.push_back(std::move(resource));
    return;
  }
  ReceivedResource& kept = received.resources[place->second];
  const bool had_been_counted = kept.rejection.has_value() || resource.rejection.has_value();
  static const ParseOptions options;
  ValidationErrors errors(options);
  errors.top().add("must occur once in a response, found more than once");
  kept = errors.refuse(to_string(received.type), resource.name);
  shorten(kept);
  if (!had_been_counted) count(*kept.rejection, received);
}

// Counts the length of the resource's error text. Replaces the text by a short one if all texts
// together are too long (P3).
void ResponseParser::shorten(ReceivedResource& resource) {
  if (resource.resource.ok()) return;
  kept_text_ += resource.resource.status().message().size();
  if (kept_text_ <= kMaxKeptErrorText) return;
  static const absl::Status unlisted = absl::InvalidArgumentError(
      "must be valid, found an error that is not listed: the response has too many of them");
  resource.resource = unlisted;
}

void ResponseParser::add_unnamed(absl::string_view error) {
  ResourcesReceived& received = response_.received;
  if (received.unnamed_errors.size() < kMaxKeptErrors)
    received.unnamed_errors.emplace_back(error);
  else
    ++received.more_unnamed;
}

// Adds an error for the resources beyond max_resources. Their names are not read (P1).
void ResponseParser::refuse_rest() {
  const std::size_t rest = entry_count_ - entries_.size();
  if (rest == 0) return;
  ResourcesReceived& received = response_.received;
  add_unnamed(absl::StrCat("a response must have at most ",
                           options_.limits.max_resources,
                           " resources, found ",
                           entry_count_,
                           " (limit max_resources)"));
  received.more_unnamed += rest - 1;
  received.rejected.at(static_cast<std::size_t>(RejectionReason::kLimit)) += rest;
}

// The text of the NACK: the first errors, up to limits on their number and their length, and the
// number of further errors (P3).
std::string ResponseParser::nack_detail() const {
  const ResourcesReceived& received = response_.received;
  std::vector<absl::string_view> errors;
  std::size_t count = received.unnamed_errors.size() + received.more_unnamed;
  for (const ReceivedResource& resource : received.resources) {
    if (resource.resource.ok()) continue;
    ++count;
    if (errors.size() < kMaxKeptErrors) errors.push_back(resource.resource.status().message());
  }
  for (const std::string& error : received.unnamed_errors) {
    if (errors.size() < kMaxKeptErrors) errors.push_back(error);
  }
  std::string detail;
  std::size_t listed = 0;
  for (const absl::string_view error : errors) {
    if (detail.size() + error.size() > kMaxNackDetailLength) break;
    absl::StrAppend(&detail, listed++ > 0 ? "; " : "", error);
  }
  if (listed < count) {
    absl::StrAppend(
        &detail, listed > 0 ? "; " : "", "and ", count - listed, " more invalid resources");
  }
  return detail;
}

DecodedResponse ResponseParser::take() {
  refuse_rest();
  if (known_ != nullptr) known_->keep(response_.received, budget_->regexes.take_patterns());
  response_.nack_detail = nack_detail();
  return std::move(response_);
}

namespace {

struct OwnedParser {
  OwnedParser(std::string response,
              ParseOptions options,
              std::shared_ptr<KnownResources> kept,
              std::size_t part_size)
      : bytes(std::move(response)),
        known(std::move(kept)),
        parser(bytes, std::move(options), known.get(), part_size) {}

  std::string bytes;
  std::shared_ptr<KnownResources> known;
  ResponseParser parser;
};

}  // namespace

Decoding decode_in_parts(std::string bytes,
                         ParseOptions options,
                         std::shared_ptr<KnownResources> known,
                         std::size_t part_size) {
  auto owned = std::make_shared<OwnedParser>(
      std::move(bytes), std::move(options), std::move(known), part_size);
  return [owned] { return owned->parser.go_on(); };
}

}  // namespace signalbox::xds
