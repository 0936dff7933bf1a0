// SPDX-License-Identifier: Apache-2.0
//
// TransportName — the name of the peer in a gRPC transport that was made from a socket.
//
//   grpc_channel ─▶ channel stack ─▶ transport ─▶ ["fd-client"] ◀─ "ipv4:1.2.3.4:80"
//
// gRPC 1.51 names the peer of every channel that is made from a descriptor "fd-client", and has no
// function to change that name. ClientContext::peer() returns it. So the name is written into
// gRPC's transport, before the channel has calls.
//
// The place of the name is not part of gRPC's interface. find() searches it in channels that were
// made for the search. set() goes the same way, and writes only if it finds a std::string with
// exactly the text "fd-client" there. Memory is read by a system call that fails for an invalid
// address. So another build of gRPC ends in "not found", not in a crash.

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <grpc/grpc.h>

namespace signalbox::actors {

class TransportName {
 public:
  /// The places where all `channels` have a name, the most likely place first. Precondition: the
  /// channels were made from descriptors, with the same arguments: these decide how many filters
  /// stand before the transport.
  static std::vector<TransportName> find(std::span<grpc_channel* const> channels);

  /// Replaces the name "fd-client" of the channel's transport. False: it is not at this place, and
  /// nothing was written. Precondition: the channel has had no calls yet.
  [[nodiscard]] bool set(const grpc_channel* channel, const std::string& name) const;

  friend auto operator<=>(const TransportName&, const TransportName&) = default;

 private:
  TransportName(std::size_t stack, std::size_t transport, std::size_t name)
      : stack_(stack), transport_(transport), name_(name) {}

  static std::vector<TransportName> find_in(const grpc_channel* channel);

  // Offsets: of the stack's pointer in the channel, of the transport's pointer in the stack, and of
  // the name in the transport.
  std::size_t stack_;
  std::size_t transport_;
  std::size_t name_;
};

}  // namespace signalbox::actors
