// Runs work that several clients ask for, one after another, on one thread: torch's settings belong to a thread, and a
// model has one state. Clients can look at work, wait for it and cancel it.
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
  int64_t number = 0;     ///< running number of the work, from 1
  std::string kind = {};  ///< "edit"
  std::string what = {};  ///< text for people: "edit 3 facts"
};

enum class WorkOutcome { kDone, kFailed, kCancelled };
const char* outcome_name(WorkOutcome outcome);  ///< "done", "failed", "cancelled"

struct FinishedWork {
  WorkItem item = {};
  WorkOutcome outcome = WorkOutcome::kDone;
  std::string message = {};  ///< the text that it returned or threw
};

struct WorkView {
  std::optional<WorkItem> running = {};
  bool is_cancellable = false;  ///< whether the running work can be cancelled
  std::vector<WorkItem> waiting = {};
  std::vector<FinishedWork> finished = {};  ///< the latest ones, the oldest first
};

struct WorkHooks {
  std::function<void()> changed = {};    ///< called when the view has changed, from any thread, without a lock
  std::function<void()> interrupt = {};  ///< makes the running work end with Cancelled soon
};

class WorkQueue {
 public:
  /// Returns a message about the work. An exception ends the work; Cancelled does not count as a failure.
  using Work = std::function<std::string()>;

  WorkQueue(size_t most_waiting, WorkHooks hooks);
  /// Calls stop() and waits until the running work has ended.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Adds work and returns its number; nullopt: too many wait, or the queue is stopped.
  std::optional<int64_t> add(const std::string& kind, const std::string& what, Work work);

  /// Removes work that waits, or interrupts work that runs. Returns false if it does neither, or can no longer be
  /// cancelled.
  bool cancel(int64_t number);

  /// Called from within the work when only its report is left. From now on it can no longer be cancelled.
  void begin_last_part();

  /// Returns whether the running work should be interrupted. Work asks this when it starts to listen, so that an
  /// earlier interruption is not lost.
  bool wants_interruption() const;

  /// Removes all work that waits, interrupts the running work, and accepts no more work.
  void stop();
  /// Waits and returns whether nothing is running or waiting at the end.
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
