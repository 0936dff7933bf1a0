// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/random_subsetting.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/trace.hpp"
#include "lb/tree/pass_through.hpp"
#include "lb/xx_hash.hpp"

namespace signalbox::lb {
namespace {

// An endpoint with its hash. Candidates of equal hash are ordered by address, so that the order of
// the list does not matter.
struct Candidate {
  std::uint64_t hash = 0;
  const Address* address = nullptr;
  std::size_t place = 0;  // In the order of the list.

  friend bool operator<(const Candidate& left, const Candidate& right) {
    return left.hash != right.hash ? left.hash < right.hash : *left.address < *right.address;
  }
};

// For each endpoint, in the order of the list: whether it is in the subset.
std::vector<bool> chosen_of(const Endpoints& all, std::size_t size, std::uint64_t seed) {
  std::vector<Candidate> candidates;
  candidates.reserve(count_endpoints(all));
  for (const Priority& priority : all.priorities) {
    for (const LocalityPtr& locality : priority.localities) {
      for (const Endpoint& endpoint : locality->endpoints) {
        const Address& first = endpoint.addresses.front();
        candidates.push_back({xx_hash(first.str(), seed), &first, candidates.size()});
      }
    }
  }
  std::ranges::nth_element(
      candidates, candidates.begin() + static_cast<std::ptrdiff_t>(size), std::less<>());
  std::vector<bool> chosen(candidates.size());
  for (std::size_t at = 0; at < size; ++at)
    chosen[candidates[at].place] = true;
  return chosen;
}

LocalityPtr shared_with(const EndpointsPtr& before, Locality&& locality) {
  if (before != nullptr) {
    for (const Priority& priority : before->priorities) {
      for (const LocalityPtr& known : priority.localities) {
        if (*known == locality) return known;
      }
    }
  }
  return std::make_shared<const Locality>(std::move(locality));
}

class SubsetNote final : public PickNote {
 public:
  SubsetNote(std::size_t chosen, std::size_t all) : chosen_(chosen), all_(all) {}

  void tell(const PickArgs& /*args*/, PickTrace& trace) const override {
    trace.tell({"random_subsetting",
                absl::StrCat("uses ", chosen_, " of ", all_, " endpoints"),
                "this client's seed chose them",
                "CDS"});
  }

 private:
  const std::size_t chosen_;
  const std::size_t all_;
};

class RandomSubsetting final : public PassThrough {
 public:
  explicit RandomSubsetting(const PolicyContext& context)
      : seed_(draw(context.seed, Salt::kSubset)) {}

 private:
  Given give(const ConfigUpdated& update, Instant /*now*/, LbEffects& /*effects*/) override {
    const auto& config = config_of<RandomSubsettingConfig>(update);
    subset_ = choose_subset(update.endpoints, config.subset_size, seed_, subset_);
    const std::size_t all = update.endpoints == nullptr ? 0 : count_endpoints(*update.endpoints);
    const std::size_t chosen = subset_ == nullptr ? 0 : count_endpoints(*subset_);
    if (std::exchange(counts_, std::pair(chosen, all)) != counts_) shown_for_ = nullptr;
    return {config.child, subset_};
  }

  PickerPtr show(const PickerPtr& picker) override {
    if (picker == nullptr || counts_.first == counts_.second) return picker;
    if (std::exchange(shown_for_, picker) != picker) {
      shown_ = make_explained_picker(
          picker, std::make_shared<const SubsetNote>(counts_.first, counts_.second));
    }
    return shown_;
  }

  const std::uint64_t seed_;
  EndpointsPtr subset_;
  std::pair<std::size_t, std::size_t> counts_{0, 0};  // Chosen endpoints, all endpoints.
  PickerPtr shown_for_;                               // The child's picker that shown_ wraps.
  PickerPtr shown_;
};

}  // namespace

EndpointsPtr choose_subset(const EndpointsPtr& all,
                           std::size_t size,
                           std::uint64_t seed,
                           const EndpointsPtr& before) {
  if (all == nullptr || count_endpoints(*all) <= size) return all;
  const std::vector<bool> chosen = chosen_of(*all, size, seed);
  auto subset = std::make_shared<Endpoints>(*all);
  std::size_t at = 0;
  for (Priority& priority : subset->priorities) {
    std::vector<LocalityPtr> localities;
    for (const LocalityPtr& locality : std::exchange(priority.localities, {})) {
      Locality part{locality->name, locality->weight, {}};
      for (const Endpoint& endpoint : locality->endpoints) {
        if (chosen[at++]) part.endpoints.push_back(endpoint);
      }
      if (part.endpoints.empty()) continue;
      const bool is_whole = part.endpoints.size() == locality->endpoints.size();
      localities.push_back(is_whole ? locality : shared_with(before, std::move(part)));
    }
    priority.localities = std::move(localities);
  }
  return subset;
}

std::unique_ptr<Policy> make_random_subsetting(const PolicyContext& context) {
  return std::make_unique<RandomSubsetting>(context);
}

}  // namespace signalbox::lb
