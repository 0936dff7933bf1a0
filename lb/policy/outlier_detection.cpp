// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/outlier_detection.hpp"

#include "lb/config_of.hpp"
#include "lb/policy/pass_through.hpp"

namespace signalbox::lb {
namespace {

class OutlierDetection final : public PassThrough {
  Given give(const ConfigUpdated& update) override {
    return {config_of<OutlierDetectionConfig>(update).child, update.endpoints};
  }
};

}  // namespace

std::unique_ptr<Policy> make_outlier_detection() {
  return std::make_unique<OutlierDetection>();
}

}  // namespace signalbox::lb
