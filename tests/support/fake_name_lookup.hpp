// SPDX-License-Identifier: Apache-2.0
//
// FakeNameLookup — names have the addresses that the world gave them; sometimes nobody answers.

#pragma once

#include <map>
#include <utility>
#include <vector>

#include "actors/io/name_lookup.hpp"
#include "tests/support/fake_chance.hpp"

namespace signalbox::testing {

class FakeNameLookup final : public actors::NameLookup {
 public:
  explicit FakeNameLookup(FakeChance& chance) : chance_(chance) {}

  absl::StatusOr<std::vector<Address>> resolve(const DnsName& name) override {
    const auto found = names_.find(name);
    if (found == names_.end()) return absl::NotFoundError("no such host: " + name.str());
    if (chance_.percent(failing_)) return absl::UnavailableError("no answer for " + name.str());
    return found->second;
  }

  void set(const DnsName& name, std::vector<Address> addresses) {
    names_[name] = std::move(addresses);
  }

  void set_failing(unsigned percent) { failing_ = percent; }

 private:
  FakeChance& chance_;
  unsigned failing_ = 0;
  std::map<DnsName, std::vector<Address>> names_;
};

}  // namespace signalbox::testing
