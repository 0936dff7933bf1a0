// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/cluster_impl.hpp"

#include "lb/config_of.hpp"
#include "lb/policy/pass_through.hpp"

namespace signalbox::lb {
namespace {

class ClusterImpl final : public PassThrough {
  Given give(const ConfigUpdated& update) override {
    return {config_of<ClusterImplConfig>(update).child, update.endpoints};
  }
};

}  // namespace

std::unique_ptr<Policy> make_cluster_impl() {
  return std::make_unique<ClusterImpl>();
}

}  // namespace signalbox::lb
