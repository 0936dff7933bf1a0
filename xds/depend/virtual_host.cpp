// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/virtual_host.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/match.h"

namespace signalbox::xds {
namespace {

enum class DomainKind : std::uint8_t { kAny, kPrefix, kSuffix, kExact };

// The specificity of a match: first by kind, then by length.
struct Rank {
  DomainKind kind = DomainKind::kAny;
  std::size_t length = 0;

  friend auto operator<=>(const Rank&, const Rank&) = default;
};

// A wildcard stands for at least one character.
std::optional<Rank> rank_of(absl::string_view domain, absl::string_view authority) {
  if (domain == "*") return Rank{DomainKind::kAny, domain.size()};
  if (absl::EqualsIgnoreCase(domain, authority)) return Rank{DomainKind::kExact, domain.size()};
  if (domain.size() > authority.size()) return std::nullopt;
  if (absl::StartsWith(domain, "*") && absl::EndsWithIgnoreCase(authority, domain.substr(1)))
    return Rank{DomainKind::kSuffix, domain.size()};
  if (absl::EndsWith(domain, "*") &&
      absl::StartsWithIgnoreCase(authority, domain.substr(0, domain.size() - 1)))
    return Rank{DomainKind::kPrefix, domain.size()};
  return std::nullopt;
}

}  // namespace

bool domain_matches(absl::string_view domain, absl::string_view authority) {
  return rank_of(domain, authority).has_value();
}

const VirtualHost* find_virtual_host(const RouteConfig& config, absl::string_view authority) {
  const VirtualHost* best = nullptr;
  Rank best_rank;
  for (const VirtualHost& host : config.virtual_hosts) {
    for (const auto& domain : host.domains) {
      const auto rank = rank_of(domain, authority);
      if (!rank || (best != nullptr && *rank <= best_rank)) continue;
      best = &host;
      best_rank = *rank;
    }
  }
  return best;
}

}  // namespace signalbox::xds
