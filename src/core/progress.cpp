#include "lancet/core/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <utility>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr double kRedrawSeconds = 0.1;  ///< ProgressStyle::kLive
constexpr double kLineSeconds = 10.0;   ///< kLines, also before the first line

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

/// Returns "3.1/s", "250/s", "20.0 s each".
std::string rate_text(double per_second) {
  if (per_second < 0.1) return duration_text(1.0 / per_second) + " each";
  return formatted(per_second < 10.0 ? "%.1f/s" : "%.0f/s", per_second);
}

/// Does not show tenths of a second, which would flicker.
std::string remaining_text(double seconds) {
  return seconds < 59.5 ? formatted("%.0f s left", std::ceil(seconds)) : duration_text(seconds) + " left";
}

}  // namespace

Progress::Progress(std::string stage, int64_t total, std::string unit, std::string note)
    : stage_(std::move(stage)), unit_(std::move(unit)), note_(std::move(note)), total_(total) {
  {
    const std::lock_guard lock(mutex_);
    draw();
  }
  heartbeat_.emplace([this] {
    const std::lock_guard lock(mutex_);
    return now();
  });
}

Progress::~Progress() { finish(); }

void Progress::advance(int64_t done) {
  const std::lock_guard lock(mutex_);
  done_ += done;
  draw();
}

void Progress::set(int64_t done) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  draw();
}

void Progress::skip(int64_t done) {
  const std::lock_guard lock(mutex_);
  skipped_ += done;
  done_ += done;
  draw();
}

void Progress::measure_by(std::string name, int64_t pieces) {
  const std::lock_guard lock(mutex_);
  piece_ = std::move(name);
  pieces_ = pieces;
}

void Progress::estimate_by(std::function<WorkSoFar()> work) {
  const std::lock_guard lock(mutex_);
  estimate_ = std::move(work);
}

void Progress::expect_pieces(int64_t more) {
  const std::lock_guard lock(mutex_);
  pieces_ += more;
}

void Progress::advance_pieces(int64_t done) {
  const std::lock_guard lock(mutex_);
  pieces_done_ += done;
  draw();
}

void Progress::note(std::string text) {
  const std::lock_guard lock(mutex_);
  note_ = std::move(text);
}

void Progress::finish() {
  heartbeat_.reset();  // first, because its thread may be waiting for the lock
  const std::lock_guard lock(mutex_);
  estimate_ = nullptr;
  if (std::exchange(finished_, true) || reporter_.progress_style() == ProgressStyle::kNone) return;
  reporter_.show(now());
}

void Progress::draw() {
  reporter_.step();
  const ProgressStyle style = reporter_.progress_style();
  if (finished_ || style == ProgressStyle::kNone) return;
  const bool is_live = style == ProgressStyle::kLive;
  const StageTime time = stage_now();
  if (!estimate_) pace_.note(time, work().done);
  const bool is_first = drawn_ == StageTime{};
  const StageTime last = is_first ? begun_ : drawn_;
  const bool is_due = (is_live && is_first) || seconds_between(last, time) >= (is_live ? kRedrawSeconds : kLineSeconds);
  if (!is_due) return;
  drawn_ = time;
  reporter_.show(now());
  if (estimate_) pace_.note(time, estimate_().done);  // estimates can be expensive, so they are not made at each step
}

StageProgress Progress::now() const {
  return {.stage = stage_, .done = done_, .total = total_, .unit = unit_, .line = line(), .is_finished = finished_};
}

WorkSoFar Progress::work() const {
  if (estimate_) return estimate_();
  if (pieces_ > 0)
    return {.done = static_cast<double>(pieces_done_), .left = static_cast<double>(pieces_ - pieces_done_)};
  return {.done = static_cast<double>(done_ - skipped_), .left = static_cast<double>(total_ > 0 ? total_ - done_ : 0)};
}

std::string Progress::line() const {
  const double elapsed = seconds_between(begun_, stage_now());
  std::string out = cat(stage_, "  ", done_, total_ > 0 ? cat("/", total_) : "", " ", unit_);
  // Unwinding ends a stage, too, but it is not finished then. Fewer steps than `total_` do not show this, because a
  // corpus may end early.
  if (finished_)
    out += cat(std::uncaught_exceptions() > 0 ? "  stopped after " : "  in ", duration_text(elapsed));
  else if (!piece_.empty() && pieces_ > 0)
    out += cat("  ", piece_, " ", pieces_done_, "/", pieces_);
  if (done_ > skipped_ && elapsed > 0) out += "  " + rate_text(static_cast<double>(done_ - skipped_) / elapsed);
  if (const std::optional<double> left = finished_ ? std::nullopt : pace_.seconds_left(stage_now(), work()))
    out += "  " + remaining_text(*left);
  return note_.empty() ? out : out + "  " + note_;
}

std::string duration_text(double seconds) {
  const double known = std::isfinite(seconds) ? std::clamp(seconds, 0.0, 1e12) : 0.0;
  // The limits are those of the rounded text, so it is never "1000 ms" or "60.0 s".
  if (known < 0.9995) return formatted("%.0f ms", known * 1e3);
  if (known < 59.95) return formatted("%.1f s", known);
  const int64_t whole = std::llround(known);
  if (whole < 3600) return cat(whole / 60, " min ", whole % 60, " s");
  const int64_t minutes = std::llround(known / 60.0);
  return formatted("%lld h %02lld min", static_cast<long long>(minutes / 60), static_cast<long long>(minutes % 60));
}

namespace {

/// The time between two checks of the clock.
constexpr std::chrono::milliseconds kLook{250};

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
         seconds_between(std::max(begun_, reporter_.told_), stage_now()) >= kHeartbeatSeconds;
}

void Heartbeat::watch(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); })) {
    if (!is_due()) continue;
    StageProgress now = now_();
    now.line += cat("  (running for ", duration_text(seconds_between(begun_, stage_now())), ")");
    reporter_.show(now);
  }
}

}  // namespace lancet
