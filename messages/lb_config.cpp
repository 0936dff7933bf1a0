// SPDX-License-Identifier: Apache-2.0
#include "messages/lb_config.hpp"

namespace signalbox {
namespace {

template <typename Config>
absl::string_view name_of(const Config& /*config*/) {
  return Config::kName;
}

absl::string_view name_of(const CustomConfig& config) {
  return config.name;
}

}  // namespace

absl::string_view policy_name(const LbConfig& config) {
  return std::visit([](const auto& own) { return name_of(own); },
                    static_cast<const LbConfig::variant&>(config));
}

bool operator==(const LbConfig& left, const LbConfig& right) {
  return static_cast<const LbConfig::variant&>(left) ==
         static_cast<const LbConfig::variant&>(right);
}

}  // namespace signalbox
