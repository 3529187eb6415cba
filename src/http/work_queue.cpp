#include "lancet/http/work_queue.h"

#include <algorithm>
#include <utility>

#include "lancet/core/error.h"

namespace lancet {
namespace {

/// The number of finished pieces of work that are kept, so that clients can ask for them.
constexpr size_t kKeptFinished = 32;

}  // namespace

const char* outcome_name(WorkOutcome outcome) {
  return outcome == WorkOutcome::kDone ? "done" : outcome == WorkOutcome::kFailed ? "failed" : "cancelled";
}

WorkQueue::WorkQueue(size_t most_waiting, WorkHooks hooks) : most_waiting_(most_waiting), hooks_(std::move(hooks)) {
  thread_ = std::thread([this] { run(); });
}

WorkQueue::~WorkQueue() {
  stop();
  thread_.join();
}

std::optional<int64_t> WorkQueue::add(const std::string& kind, const std::string& what, Work work) {
  int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_ || waiting_.size() >= most_waiting_) return std::nullopt;
    number = ++last_number_;
    waiting_.push_back({.item = {number, kind, what}, .work = std::move(work)});
  }
  change_.notify_all();
  hooks_.changed();
  return number;
}

bool WorkQueue::cancel(int64_t number) {
  bool runs = false;
  {
    const std::lock_guard lock(mutex_);
    if (running_ && running_->item.number == number) {
      if (running_->is_in_last_part) return false;
      running_->is_cancelled = runs = true;
      hooks_.interrupt();  // inside the lock, so that no other work begins meanwhile
    } else {
      const auto found = std::ranges::find(waiting_, number, [](const Entry& entry) { return entry.item.number; });
      if (found == waiting_.end()) return false;
      note({found->item, WorkOutcome::kCancelled, {}});
      waiting_.erase(found);
    }
  }
  change_.notify_all();
  hooks_.changed();
  return true;
}

void WorkQueue::begin_last_part() {
  const std::lock_guard lock(mutex_);
  if (!running_) return;
  running_->is_cancelled = false;
  running_->is_in_last_part = true;
}

bool WorkQueue::wants_interruption() const {
  const std::lock_guard lock(mutex_);
  return running_ && running_->is_cancelled;
}

void WorkQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    for (Entry& entry : waiting_) note({std::move(entry.item), WorkOutcome::kCancelled, {}});
    waiting_.clear();
    if (running_ && !running_->is_in_last_part) {
      running_->is_cancelled = true;
      hooks_.interrupt();
    }
  }
  change_.notify_all();
  hooks_.changed();
}

bool WorkQueue::wait_until_idle(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return change_.wait_for(lock, longest, [this] { return !running_ && waiting_.empty(); });
}

WorkView WorkQueue::view() const {
  const std::lock_guard lock(mutex_);
  WorkView view;
  if (running_) {
    view.running = running_->item;
    view.is_cancellable = !running_->is_cancelled && !running_->is_in_last_part;
  }
  for (const Entry& entry : waiting_) view.waiting.push_back(entry.item);
  view.finished.assign(finished_.begin(), finished_.end());
  return view;
}

void WorkQueue::note(FinishedWork finished) {
  finished_.push_back(std::move(finished));
  if (finished_.size() > kKeptFinished) finished_.pop_front();
}

FinishedWork WorkQueue::do_work(Entry& entry) {
  try {
    return {entry.item, WorkOutcome::kDone, entry.work()};
  } catch (const Cancelled&) {
    return {entry.item, WorkOutcome::kCancelled, {}};
  } catch (const std::exception& error) {
    return {entry.item, WorkOutcome::kFailed, error.what()};
  }
}

void WorkQueue::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      change_.wait(lock, [this] { return is_stopped_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      running_ = std::move(waiting_.front());
      waiting_.pop_front();
    }
    hooks_.changed();
    finish(do_work(*running_));
  }
}

void WorkQueue::finish(FinishedWork finished) {
  Work done;  // destroyed outside of the lock
  {
    const std::lock_guard lock(mutex_);
    done = std::move(running_->work);
    running_.reset();
    note(std::move(finished));
  }
  change_.notify_all();
  hooks_.changed();
}

}  // namespace lancet
