#include "lancet/core/heartbeat.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Time between looks at the clock.
constexpr std::chrono::milliseconds kLook{250};

double seconds_since(StageTime begin) { return std::chrono::duration<double>(stage_now() - begin).count(); }

}  // namespace

Heartbeat::Heartbeat(std::function<StageProgress()> now) : now_(std::move(now)) {
  {
    const std::lock_guard lock(reporter_.mutex_);
    reporter_.heartbeats_.push_back(this);
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Heartbeat::~Heartbeat() {
  const std::lock_guard lock(reporter_.mutex_);
  std::erase(reporter_.heartbeats_, this);
}

bool Heartbeat::is_due() const {
  if (reporter_.progress_style() == ProgressStyle::kNone) return false;
  const std::lock_guard lock(reporter_.mutex_);
  return !reporter_.heartbeats_.empty() && reporter_.heartbeats_.back() == this &&
         seconds_since(std::max(begun_, reporter_.told_)) >= kHeartbeatSeconds;
}

void Heartbeat::watch(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); })) {
    if (!is_due()) continue;
    StageProgress now = now_();
    now.line += cat("  (running for ", duration_text(seconds_since(begun_)), ")");
    reporter_.show(now);
  }
}

}  // namespace lancet
