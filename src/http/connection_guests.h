// Who may have a connection: so many in all, so many of one address. Whoever has not sent a whole request yet makes
// room for others.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "lancet/http/http_server.h"

namespace lancet {

/// What a connection waits for from the other end.
enum class Awaited {
  kHead,
  kBody,    ///< or, of a request that was refused, the end of what comes
  kNothing  ///< what came is read, or answered
};

/// Calls are under the server's lock.
class ConnectionGuests {
 public:
  explicit ConnectionGuests(const HttpLimits& limits) : limits_(limits) {}

  /// False: there is no room, and nobody who could make some. Who has to go for the new one is disconnected, so that
  /// its thread comes to its end.
  bool enter(int connection);
  void note(int connection, Awaited awaited);
  /// Takes a guest out, before its connection is closed.
  void leave(int connection);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Guest {
    std::string peer;
    Time came;
    Awaited awaited = Awaited::kHead;
  };

  bool is_full(const std::string& peer) const;
  static bool goes_before(const Guest& one, const Guest& other);
  bool send_away(const std::string& peer);

  const HttpLimits limits_;
  std::map<int, Guest> guests_;  ///< one for each connection, without those that were sent away
};

}  // namespace lancet
