// Work that is asked for by several at once and done one after the other, on one thread: torch's settings are a
// thread's own, and a model has one state. What is done can be looked at, waited for and cancelled.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lancet {

struct WorkItem {
  int64_t number = 0;     ///< number among all work, from 1
  std::string kind = {};  ///< "edit"
  std::string what = {};  ///< text for people: "edit 3 facts"
};

enum class WorkOutcome { kDone, kFailed, kCancelled };
const char* outcome_name(WorkOutcome outcome);  ///< "done", "failed", "cancelled"

struct FinishedWork {
  WorkItem item = {};
  WorkOutcome outcome = WorkOutcome::kDone;
  std::string message = {};  ///< what it returned, or what it threw
};

struct WorkView {
  std::optional<WorkItem> running = {};
  bool is_cancellable = false;  ///< what runs
  std::vector<WorkItem> waiting = {};
  std::vector<FinishedWork> finished = {};  ///< the last ones, the oldest first
};

struct WorkHooks {
  std::function<void()> changed = {};    ///< the view did; called from any thread, without a lock
  std::function<void()> interrupt = {};  ///< ends what runs by Cancelled, soon
};

class WorkQueue {
 public:
  /// Returns what is told of it. What it throws is its end; Cancelled is no failure.
  using Work = std::function<std::string()>;

  WorkQueue(size_t most_waiting, WorkHooks hooks);
  /// stop(), and waits for the end of what runs.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// The item's number; nullopt: too many wait, or the queue is stopped.
  std::optional<int64_t> add(const std::string& kind, const std::string& what, Work work);

  /// What waits goes, what runs is interrupted. False: it is neither, or no longer to be cancelled.
  bool cancel(int64_t number);

  /// Tells, from within the work, that it is done but for telling so. What cancels it from here on comes too late.
  void begin_last_part();

  /// Whether an interruption is wanted, for whatever the work tells while it runs: one that came before the work
  /// listened is wanted still.
  bool wants_interruption() const;

  /// Everything that waits goes, what runs is interrupted, nothing comes any more.
  void stop();
  /// Whether nothing runs, by then.
  bool wait_until_idle(std::chrono::milliseconds longest);

  WorkView view() const;

 private:
  struct Entry {
    WorkItem item = {};
    Work work = {};
    bool is_cancelled = false;
    bool is_in_last_part = false;
  };

  void run();
  void finish(FinishedWork finished);
  static FinishedWork do_work(Entry& entry);
  void note(FinishedWork finished);

  const size_t most_waiting_;
  const WorkHooks hooks_;
  mutable std::mutex mutex_;
  std::condition_variable change_;
  std::deque<Entry> waiting_;
  std::optional<Entry> running_;
  std::deque<FinishedWork> finished_;
  int64_t last_number_ = 0;
  bool is_stopped_ = false;
  std::thread thread_;
};

}  // namespace lancet
