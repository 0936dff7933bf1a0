// SPDX-License-Identifier: Apache-2.0
//
// FakeNameLookup — resolves names to the addresses that the simulation has set. Faults can make a
// look-up fail, or give no address, or only one of them.

#pragma once

#include <map>
#include <utility>
#include <vector>

#include "actors/io/name_lookup.hpp"
#include "tests/support/fake_faults.hpp"

namespace signalbox::testing {

class FakeNameLookup final : public actors::NameLookup {
 public:
  explicit FakeNameLookup(FakeFaults& faults) : faults_(faults) {}

  absl::StatusOr<std::vector<Address>> resolve(const DnsName& name) override {
    const auto found = names_.find(name);
    if (found == names_.end()) return absl::NotFoundError("no such host: " + name.str());
    if (faults_.fires(Fault::kNamesFail))
      return absl::UnavailableError("no answer for " + name.str());
    if (faults_.fires(Fault::kNamesEmpty)) return std::vector<Address>{};
    if (faults_.fires(Fault::kNamesChange))
      return std::vector<Address>{faults_.dice(Fault::kNamesChange).one_of(found->second)};
    return found->second;
  }

  void set(const DnsName& name, std::vector<Address> addresses) {
    names_[name] = std::move(addresses);
  }

 private:
  FakeFaults& faults_;
  std::map<DnsName, std::vector<Address>> names_;
};

}  // namespace signalbox::testing
