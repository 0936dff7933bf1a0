// SPDX-License-Identifier: Apache-2.0
#include "messages/build_facts.hpp"

namespace signalbox {

absl::string_view build_version() {
  return SIGNALBOX_VERSION;
}

absl::string_view build_revision() {
  return SIGNALBOX_REVISION;
}

absl::string_view build_type() {
  return SIGNALBOX_BUILD_TYPE;
}

}  // namespace signalbox
