#include "worker.h"

#include <unistd.h>
#include <csignal>

#include <utility>

#include "lancet/core/error.h"

namespace lancet::python {
namespace {

/// How often a cancel that waits for the work's first step is tried again.
constexpr std::chrono::milliseconds kCancelWait{1};
constexpr std::chrono::seconds kExitWait{5};

/// Signals belong to the interpreter: its own threads handle them, not the one that is made meanwhile.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Worker::Worker(Delivery delivery) : events_(bell_, delivery), process_(::getpid()) {
  const WithoutSignals masked;
  thread_ = std::thread([this] { live(); });
}

Worker::~Worker() {
  if (process_ != ::getpid()) {  // after a fork, the thread belongs to the other process
    thread_.detach();
    return;
  }
  end({});
}

void Worker::live() {
  const ReporterScope scope(events_);
  std::unique_lock lock(bell_.mutex);
  while (true) {
    bell_.rung.wait(lock, [&] { return is_ended_ || (is_taken_ && !is_done_ && work_); });
    if (!work_) return;
    std::function<void()> work = std::exchange(work_, {});
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    work = {};
    lock.lock();
    error_ = std::move(error);
    is_done_ = true;
    bell_.rung.notify_all();
    if (is_ended_) return;
  }
}

void Worker::enter() {
  const std::lock_guard lock(bell_.mutex);
  ++n_inside_;
}

void Worker::leave() {
  const std::lock_guard lock(bell_.mutex);
  --n_inside_;
  bell_.rung.notify_all();
}

bool Worker::try_begin(std::function<void()> work) {
  if (process_ != ::getpid())
    throw ConfigError("this session was opened before the process forked: open another one here");
  const std::lock_guard lock(bell_.mutex);
  if (is_closed_) throw ConfigError("this session is closed: open another one");
  check_other_thread();
  if (is_taken_) return false;
  is_taken_ = true;
  owner_ = std::this_thread::get_id();
  start(std::move(work));
  return true;
}

void Worker::check_other_thread() const {
  if (is_taken_ && owner_ == std::this_thread::get_id())
    throw ConfigError("a call of this session runs in this thread: within it, only cancel() can be called");
}

void Worker::start(std::function<void()> work) {
  is_done_ = wants_cancel_ = has_cancelled_ = false;
  error_ = nullptr;
  steps_before_ = events_.steps();
  events_.resume();
  events_.attend();
  work_ = std::move(work);
  bell_.rung.notify_all();
}

void Worker::go_on(std::function<void()> work) {
  const std::lock_guard lock(bell_.mutex);
  start(std::move(work));
}

Seen Worker::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(bell_.mutex);
  const bool is_owner = is_taken_ && owner_ == std::this_thread::get_id();
  const auto is_due = [&] {
    return is_exiting_ || (is_owner ? is_done_ || !events_.empty() : !is_taken_ || is_closed_);
  };
  ++n_asleep_;
  bell_.rung.notify_all();
  pass_cancel();
  bell_.rung.wait_for(lock, wants_cancel_ && !has_cancelled_ ? kCancelWait : most, is_due);
  pass_cancel();
  if (is_exiting_) {  // n_asleep_ counts this thread, which does not return
    events_.abandon();
    bell_.rung.notify_all();
    return Seen::kExit;
  }
  --n_asleep_;
  if (!is_owner) return Seen::kNothing;
  if (!events_.empty()) return Seen::kEvents;
  return is_done_ ? Seen::kDone : Seen::kNothing;
}

std::vector<Event> Worker::take_events() {
  const std::lock_guard lock(bell_.mutex);
  return events_.take();
}

void Worker::events_handled() {
  const std::lock_guard lock(bell_.mutex);
  events_.handled();
  bell_.rung.notify_all();
}

std::exception_ptr Worker::error() {
  const std::lock_guard lock(bell_.mutex);
  return error_;
}

std::exception_ptr Worker::finish() {
  const std::lock_guard lock(bell_.mutex);
  is_taken_ = false;
  owner_ = {};
  events_.abandon();
  bell_.rung.notify_all();
  return std::exchange(error_, nullptr);
}

void Worker::pass_cancel() {
  if (!wants_cancel_ || has_cancelled_ || events_.steps() == steps_before_) return;
  has_cancelled_ = true;
  events_.cancel();
}

void Worker::cancel() {
  const std::lock_guard lock(bell_.mutex);
  if (!is_taken_ || is_done_) return;
  wants_cancel_ = true;
  pass_cancel();
  bell_.rung.notify_all();
}

bool Worker::was_cancelled() {
  const std::lock_guard lock(bell_.mutex);
  return wants_cancel_;
}

void Worker::close() {
  {
    const std::lock_guard lock(bell_.mutex);
    is_closed_ = true;
    bell_.rung.notify_all();
  }
  cancel();
}

bool Worker::is_closed() {
  const std::lock_guard lock(bell_.mutex);
  return is_closed_;
}

bool Worker::is_free() {
  const std::lock_guard lock(bell_.mutex);
  check_other_thread();
  return !is_taken_;
}

void Worker::end(std::function<void()> last) {
  close();
  {
    std::unique_lock lock(bell_.mutex);
    if (is_ended_) return;
    events_.abandon();
    bell_.rung.notify_all();
    // a thread that never returns (kExit) does not call finish(), but its work is over
    bell_.rung.wait(lock, [&] { return !is_taken_ || is_done_; });
    work_ = std::move(last);
    is_ended_ = true;
    bell_.rung.notify_all();
  }
  thread_.join();
}

void Worker::exit() {
  close();
  std::unique_lock lock(bell_.mutex);
  is_exiting_ = true;
  bell_.rung.notify_all();
  bell_.rung.wait_for(lock, kExitWait, [&] { return n_asleep_ >= n_inside_; });
  events_.abandon();
  bell_.rung.notify_all();
}

}  // namespace lancet::python
