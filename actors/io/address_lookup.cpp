// SPDX-License-Identifier: Apache-2.0
#include "actors/io/address_lookup.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

namespace signalbox::actors {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

// The address as text, such as "1.2.3.4" or "::1". Empty if the family is neither IPv4 nor IPv6.
std::string to_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address->sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  }
  if (bytes == nullptr) return "";
  const char* written = inet_ntop(address->sa_family, bytes, text.data(), text.size());
  return written == nullptr ? "" : written;
}

class SystemLookup final : public NameLookup {
 public:
  absl::StatusOr<std::vector<Address>> resolve(const DnsName& name) override {
    const std::size_t colon = name.str().rfind(':');
    if (colon == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot resolve \"", name.str(), "\": it has no port"));
    }
    std::string host = name.str().substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']'))  // An IPv6 address.
      host = host.substr(1, host.size() - 2);
    const std::string port = name.str().substr(colon + 1);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
    if (error != 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot resolve \"", host, "\": ", gai_strerror(error)));
    }
    const std::unique_ptr<addrinfo, FreeAddresses> list(found);
    std::vector<Address> addresses;
    for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
      const std::string text = to_text(one->ai_addr);
      if (text.empty()) continue;
      const bool v6 = text.find(':') != std::string::npos;
      Address address(v6 ? absl::StrCat("[", text, "]:", port) : absl::StrCat(text, ":", port));
      if (std::ranges::find(addresses, address) == addresses.end()) {
        addresses.push_back(std::move(address));
      }
    }
    if (addresses.empty()) {
      return absl::UnavailableError(absl::StrCat("\"", host, "\" has no IPv4 or IPv6 address"));
    }
    return addresses;
  }
};

class FunctionLookup final : public NameLookup {
 public:
  explicit FunctionLookup(LookupFunction lookup) : lookup_(std::move(lookup)) {}

  absl::StatusOr<std::vector<Address>> resolve(const DnsName& name) override {
    return lookup_(name);
  }

 private:
  LookupFunction lookup_;
};

}  // namespace

std::shared_ptr<NameLookup> make_system_lookup() {
  return std::make_shared<SystemLookup>();
}

std::shared_ptr<NameLookup> make_lookup(LookupFunction lookup) {
  return std::make_shared<FunctionLookup>(std::move(lookup));
}

}  // namespace signalbox::actors
