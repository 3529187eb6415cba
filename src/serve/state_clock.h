// Counts the changes of what pages show, so that pages can wait for the next change.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace lancet {

class StateClock {
 public:
  void advance() {
    {
      const std::lock_guard lock(mutex_);
      ++now_;
    }
    change_.notify_all();
  }

  /// Waits for a number beyond `seen`, but at most `longest`, until the end, or until nobody waits any more. Returns
  /// the current number. `is_awaited`: empty if somebody always waits.
  int64_t wait_beyond(int64_t seen, std::chrono::milliseconds longest, const std::function<bool()>& is_awaited = {}) {
    const auto until = std::chrono::steady_clock::now() + longest;
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto look = std::min(until, std::chrono::steady_clock::now() + kLookForReader);
      if (change_.wait_until(lock, look, [&] { return now_ != seen || is_over_; }) || look == until) return now_;
      lock.unlock();
      const bool is_read = !is_awaited || is_awaited();
      lock.lock();
      if (!is_read) return now_;
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    change_.notify_all();
  }

 private:
  static constexpr std::chrono::milliseconds kLookForReader{250};

  std::mutex mutex_;
  std::condition_variable change_;
  int64_t now_ = 1;
  bool is_over_ = false;
};

}  // namespace lancet
