// A listening socket.
#pragma once

#include <cstdint>
#include <string>

namespace lancet {

class BoundSocket {
 public:
  /// Throws: ConfigError that says what the system said.
  BoundSocket(const std::string& host, int64_t port);
  ~BoundSocket();
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

  int descriptor() const { return descriptor_; }
  int64_t port() const { return port_; }

  /// The next connection; -1 once `wake` can be read from.
  int accept(int wake) const;

 private:
  int descriptor_ = -1;
  int64_t port_ = 0;
};

}  // namespace lancet
