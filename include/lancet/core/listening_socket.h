// A TCP socket that listens at one address of this host alone.
#pragma once

#include <cstdint>
#include <string>

namespace lancet {

class ListeningSocket {
 public:
  /// `port` 0: any free one. Throws: std::system_error when it is in use or the address is not this host's.
  ListeningSocket(const std::string& address, int64_t port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int64_t port() const;
  /// The descriptor, from here on the caller's.
  int release();

 private:
  int descriptor_ = -1;
};

}  // namespace lancet
