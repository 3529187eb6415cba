#include "connection_guests.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lancet {
namespace {

/// A client that sends at once needs less time for a head, also over a slow line; so does a file from this machine or
/// its network.
constexpr std::chrono::milliseconds kHeadPatience{500}, kBodyPatience{2000};

/// Returns only the address; empty if it is not known, because nobody is connected any more.
std::string peer_of(int connection) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  std::array<char, NI_MAXHOST> name{};
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(connection, any, &size) != 0) return {};
  if (::getnameinfo(any, size, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return name.data();
}

}  // namespace

bool ConnectionGuests::is_full(const std::string& peer) const {
  const auto of_peer = std::ranges::count_if(guests_, [&](const auto& guest) { return guest.second.peer == peer; });
  return of_peer >= limits_.peer_connections;
}

/// Guests that still send a head have to leave before guests that send a body; among these, the earliest first.
bool ConnectionGuests::goes_before(const Guest& one, const Guest& other) {
  return std::pair(one.awaited, one.came) < std::pair(other.awaited, other.came);
}

/// Disconnects a guest that has not sent a whole request for too long: one of `peer` if it has too many connections,
/// else any.
bool ConnectionGuests::send_away(const std::string& peer) {
  const bool of_peer = is_full(peer);
  const Time now = std::chrono::steady_clock::now();
  auto slowest = guests_.end();
  for (auto guest = guests_.begin(); guest != guests_.end(); ++guest) {
    const Guest& one = guest->second;
    const auto patience = one.awaited == Awaited::kHead ? kHeadPatience : kBodyPatience;
    if (one.awaited == Awaited::kNothing || one.came > now - patience || (of_peer && one.peer != peer)) continue;
    if (slowest == guests_.end() || goes_before(one, slowest->second)) slowest = guest;
  }
  if (slowest == guests_.end()) return false;
  ::shutdown(slowest->first, SHUT_RDWR);
  guests_.erase(slowest);
  return true;
}

bool ConnectionGuests::enter(int connection) {
  const std::string peer = peer_of(connection);
  const bool has_room = static_cast<int64_t>(guests_.size()) < limits_.connections && !is_full(peer);
  if (!has_room && !send_away(peer)) return false;
  guests_[connection] = {peer, std::chrono::steady_clock::now()};
  return true;
}

void ConnectionGuests::note(int connection, Awaited awaited) {
  if (const auto guest = guests_.find(connection); guest != guests_.end()) guest->second.awaited = awaited;
}

void ConnectionGuests::leave(int connection) { guests_.erase(connection); }

}  // namespace lancet
