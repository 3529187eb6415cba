// One thread on which all work of a session runs, one piece after the other: torch's CPU threads belong to the thread
// that computes. Whoever asks for work waits for it elsewhere (call.h) and may end it. Knows nothing of Python.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <thread>

#include "event_queue.h"

namespace lancet::python {

/// What one who waits finds.
enum class Seen {
  kNothing,  ///< the time is over
  kEvents,   ///< take_events()
  kDone,     ///< finish()
  kExit      ///< the process ends: nothing of Python may be touched any more
};

class Worker {
 public:
  explicit Worker(Delivery delivery);
  /// Ends what runs, waits for it, and joins the thread.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Reporter& reporter() { return events_; }

  /// A thread comes to have work done, and leaves: those inside are waited for at the process's end.
  void enter();
  void leave();

  /// Takes the worker for one piece of work, where nobody has it. Throws: ConfigError when it was closed, when this is
  /// a forked process's copy, and for the thread that has it already, which would wait for itself.
  bool try_begin(std::function<void()> work);
  /// Waits until something is seen, at most so long: for the one who began, or waits to begin (kNothing, kExit alone).
  Seen wait(std::chrono::milliseconds most);
  std::vector<Event> take_events();
  void events_handled();
  /// Takes more work after kDone, before another thread's. What the work before it threw is forgotten.
  void go_on(std::function<void()> work);
  /// Returns what the work threw, after kDone.
  std::exception_ptr error();
  /// Lets the next one begin, after kDone. Returns what the work threw.
  std::exception_ptr finish();

  /// Ends the work that runs at its next step; nothing where none runs. Whether it was asked for is told until the
  /// next piece begins.
  void cancel();
  bool was_cancelled();

  /// No work begins from here on; what runs is cancelled.
  void close();
  bool is_closed();
  /// Whether nobody has it. After close() it stays so. Throws: ConfigError for the thread that has it.
  bool is_free();
  /// Runs after close(), when the worker is free: `last` on its thread, then the thread ends.
  void end(std::function<void()> last);

  /// The process ends: work is cancelled, and those who wait never return. Returns when none is inside that could
  /// still touch Python, or after some seconds.
  void exit();

 private:
  void live();
  // With the lock:
  void check_other_thread() const;
  void start(std::function<void()> work);
  /// A cancel that came before the work's first step would be forgotten by it.
  void pass_cancel();

  Bell bell_;
  EventQueue events_;
  std::function<void()> work_;
  std::exception_ptr error_;
  bool is_taken_ = false, is_done_ = false, is_closed_ = false, is_ended_ = false, is_exiting_ = false;
  bool wants_cancel_ = false, has_cancelled_ = false;
  int64_t steps_before_ = 0, n_inside_ = 0, n_asleep_ = 0;
  std::thread::id owner_ = {};
  int process_ = 0;
  std::thread thread_;
};

}  // namespace lancet::python
