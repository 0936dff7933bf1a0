// SPDX-License-Identifier: Apache-2.0
//
// ParseOptions — what the environment of a process may change about parsing. Asked anew for each
// response, as gRPC does.

#pragma once

namespace signalbox::xds {

struct ParseOptions {
  /// GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT=true: an aggregate's LB policy is read, and takes
  /// the place of its leaves' own (A75-8). A temporary mechanism.
  bool keep_aggregate_lb_policy = false;
};

}  // namespace signalbox::xds
