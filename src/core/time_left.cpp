#include "lancet/core/time_left.h"

#include <algorithm>
#include <chrono>

namespace lancet {
namespace {

/// The pace is measured over a third of the time so far, but over at least kLeastWindow seconds.
constexpr double kLeastWindow = 30.0, kWindowShare = 1.0 / 3.0;
/// The approximate number of marks in a window.
constexpr double kMarks = 64;

/// The time left is shown after kLeastSeconds if kLeastShare of the work is done, and after kPatience if a share of
/// kSmallestShare is done: at first the set-up of the first piece is most of what was measured, and the first step of
/// 100 texts says nothing about the others.
constexpr double kLeastSeconds = 2.0, kLeastShare = 0.05, kPatience = 10.0, kSmallestShare = 0.001;

double window_of(double elapsed) { return std::max(kLeastWindow, elapsed * kWindowShare); }

}  // namespace

double seconds_between(StageTime from, StageTime to) { return std::chrono::duration<double>(to - from).count(); }

void WorkPace::note(StageTime now, double done) {
  const double window = window_of(seconds_between(marks_.front().when, now));
  if (seconds_between(marks_.back().when, now) * kMarks < window) return;
  marks_.push_back({now, done});
  // keeps the beginning, and the youngest mark before the window
  const auto is_before = [&](const Mark& mark) { return seconds_between(mark.when, now) >= window; };
  const auto first_within = std::find_if_not(marks_.begin() + 1, marks_.end(), is_before);
  if (first_within - marks_.begin() > 2) marks_.erase(marks_.begin() + 1, first_within - 1);
}

std::optional<double> WorkPace::seconds_left(StageTime now, const WorkSoFar& work) const {
  const double elapsed = seconds_between(marks_.front().when, now);
  if (!(work.done > 0) || !(work.left > 0) || elapsed < kLeastSeconds) return std::nullopt;
  const double share = work.done / (work.done + work.left);
  if (share < (elapsed < kPatience ? kLeastShare : kSmallestShare)) return std::nullopt;
  const double window = window_of(elapsed);
  Mark from = marks_.front();
  for (const Mark& mark : marks_)
    if (seconds_between(mark.when, now) >= window) from = mark;
  if (work.done <= from.done) from = {marks_.front().when, 0};  // no progress in the window
  return work.left * seconds_between(from.when, now) / (work.done - from.done);
}

StepsAhead::StepsAhead(int64_t items, int64_t most_steps)
    : most_steps_(most_steps),
      items_(static_cast<size_t>(items)),
      ran_(static_cast<size_t>(most_steps) + 1),
      ended_(static_cast<size_t>(most_steps) + 1) {}

void StepsAhead::add_items(int64_t more) {
  const std::lock_guard lock(mutex_);
  items_.resize(items_.size() + static_cast<size_t>(more));
}

void StepsAhead::step(int64_t item) {
  const std::lock_guard lock(mutex_);
  Item& one = items_.at(static_cast<size_t>(item));
  one.state = State::kUnderWay;
  one.steps = std::min(one.steps + 1, most_steps_);
  ++ran_[static_cast<size_t>(one.steps)];
  ++done_;
}

void StepsAhead::end(int64_t item) {
  const std::lock_guard lock(mutex_);
  Item& one = items_.at(static_cast<size_t>(item));
  if (one.state == State::kUnderWay) ++ended_[static_cast<size_t>(one.steps)];
  one.state = State::kOver;
}

void StepsAhead::restart(int64_t item) {
  const std::lock_guard lock(mutex_);
  items_.at(static_cast<size_t>(item)) = {};
}

int64_t StepsAhead::count_under_way() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count(items_, State::kUnderWay, &Item::state);
}

WorkSoFar StepsAhead::work() const {
  const std::lock_guard lock(mutex_);
  int64_t ran = 0, ended = 0;
  for (size_t step = 1; step < ran_.size(); ++step) {
    ran += ran_[step];
    ended += ended_[step];
  }
  const double usual = ran == 0 ? 0.0 : static_cast<double>(ended) / static_cast<double>(ran);
  std::vector<double> ahead(ran_.size());  // expected further steps of an item after so many
  for (size_t steps = ahead.size() - 1; steps-- > 0;) {
    const size_t next = steps + 1;
    const double last = ran_[next] == 0 ? usual : static_cast<double>(ended_[next]) / static_cast<double>(ran_[next]);
    ahead[steps] = 1 + (1 - std::min(last, 1.0)) * ahead[next];
  }
  WorkSoFar work{.done = static_cast<double>(done_)};
  for (const Item& item : items_)
    if (item.state != State::kOver) work.left += ahead[static_cast<size_t>(item.steps)];
  return work;
}

}  // namespace lancet
