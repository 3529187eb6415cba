// A listening socket.
#pragma once

#include <cstdint>
#include <string>

namespace lancet {

class BoundSocket {
 public:
  /// Throws: ConfigError with the system's message.
  BoundSocket(const std::string& host, int64_t port);
  ~BoundSocket();
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

  int descriptor() const { return descriptor_; }
  int64_t port() const { return port_; }

  /// Returns the next connection; -1 once `wake` can be read.
  int accept(int wake) const;

 private:
  int descriptor_ = -1;
  int64_t port_ = 0;
};

}  // namespace lancet
