#include "lancet/core/heartbeat.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "error_stream.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Between looks at the clock.
constexpr std::chrono::milliseconds kLook{250};

std::atomic<StageTime (*)()> clock_now{nullptr};

double seconds_since(StageTime begin) { return std::chrono::duration<double>(stage_now() - begin).count(); }

/// Those that live, the oldest first.
class Living {
 public:
  void add(const Heartbeat* one) {
    const std::lock_guard lock(mutex_);
    all_.push_back(one);
  }
  void remove(const Heartbeat* one) {
    const std::lock_guard lock(mutex_);
    std::erase(all_, one);
  }
  bool is_youngest(const Heartbeat* one) const {
    const std::lock_guard lock(mutex_);
    return !all_.empty() && all_.back() == one;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<const Heartbeat*> all_;
};

Living& living() {
  static Living all;
  return all;
}

}  // namespace

StageTime stage_now() {
  const auto clock = clock_now.load();
  return clock == nullptr ? std::chrono::steady_clock::now() : clock();
}

void set_stage_clock(StageTime (*clock)()) { clock_now = clock; }

Heartbeat::Heartbeat(std::function<std::string()> line) : line_(std::move(line)) {
  living().add(this);
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Heartbeat::~Heartbeat() { living().remove(this); }

bool Heartbeat::is_due() const {
  return verbosity() != Verbosity::kQuiet && living().is_youngest(this) &&
         seconds_since(std::max(begun_, error_stream().written())) >= kHeartbeatSeconds;
}

void Heartbeat::watch(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); }))
    if (is_due()) error_stream().show(cat(line_(), "  (running for ", duration_text(seconds_since(begun_)), ")"));
}

}  // namespace lancet
