#include "host_names.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace lancet {
namespace {

/// Returns the local end of a datagram socket that is connected to `target`; empty if there is no route.
std::string local_end(const addrinfo& target) {
  const int descriptor = ::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return {};
  sockaddr_storage local{};
  socklen_t length = sizeof(local);
  std::array<char, NI_MAXHOST> text{};
  const bool is_known = ::connect(descriptor, target.ai_addr, target.ai_addrlen) == 0 &&
                        ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &length) == 0 &&
                        ::getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text.data(), text.size(), nullptr, 0,
                                      NI_NUMERICHOST) == 0;
  ::close(descriptor);
  return is_known ? text.data() : "";
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this host";
}

std::string address_towards(const std::string& address, int64_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return address;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next)
    if (std::string local = local_end(*target); !local.empty()) return local;
  return address;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

}  // namespace lancet
