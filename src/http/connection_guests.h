// Limits the number of connections, in total and for each address. A client that has not sent a whole request yet makes
// room for others.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "lancet/http/http_server.h"

namespace lancet {

/// What a connection waits for from the client.
enum class Awaited {
  kHead,
  kBody,    ///< also, after a refused request, the end of what is sent
  kNothing  ///< the whole request has come, or was answered
};

/// All calls are made under the server's lock.
class ConnectionGuests {
 public:
  explicit ConnectionGuests(const HttpLimits& limits) : limits_(limits) {}

  /// Returns false if there is no room, and no guest that could make room. A guest that has to go for the new one is
  /// disconnected, so that its thread ends.
  bool enter(int connection);
  void note(int connection, Awaited awaited);
  /// Removes a guest, before its connection is closed.
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
  std::map<int, Guest> guests_;  ///< one for each connection, without those that were disconnected
};

}  // namespace lancet
