// A TCP socket that listens at one address of this host.
#pragma once

#include <cstdint>
#include <string>

namespace lancet {

class ListeningSocket {
 public:
  /// `port` 0: any free port. Throws: std::system_error if the port is in use or the address is not this host's.
  ListeningSocket(const std::string& address, int64_t port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int64_t port() const;
  /// Returns the descriptor, which then belongs to the caller.
  int release();

 private:
  int descriptor_ = -1;
};

}  // namespace lancet
