// One thread that runs all work of a session, one piece after another, because torch's CPU threads belong to the thread
// that computes. The caller waits for the work on its own thread (call.h), and may cancel it. This class does not use
// Python.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <thread>

#include "event_queue.h"

namespace lancet::python {

/// What a waiting thread finds.
enum class Seen {
  kNothing,  ///< the time is over
  kEvents,   ///< there are events: call take_events()
  kDone,     ///< the work is done: call finish()
  kExit      ///< the process ends, and nothing of Python may be used any more
};

class Worker {
 public:
  explicit Worker(Delivery delivery);
  /// Cancels running work, waits for its end, and joins the thread.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Reporter& reporter() { return events_; }

  /// A thread enters to have work done, and leaves afterwards. At the process's end, exit() waits for threads inside.
  void enter();
  void leave();

  /// Takes the worker for one piece of work, if it is free. Throws: ConfigError if it was closed, if this is the copy
  /// of a forked process, and if the calling thread already has it, because it would wait for itself.
  bool try_begin(std::function<void()> work);
  /// Waits at most so long until there is something. For the thread that began the work, or that waits to begin (then
  /// only kNothing and kExit).
  Seen wait(std::chrono::milliseconds most);
  std::vector<Event> take_events();
  void events_handled();
  /// Gives more work to the worker after kDone, before another thread can take it. An exception of the earlier work is
  /// dropped.
  void go_on(std::function<void()> work);
  /// Returns the exception of the work, after kDone.
  std::exception_ptr error();
  /// Frees the worker after kDone. Returns the exception of the work.
  std::exception_ptr finish();

  /// Cancels the running work at its next step; no effect if none runs. It is known until the next piece begins that a
  /// cancel was requested.
  void cancel();
  bool was_cancelled();

  /// From now on no work begins. Running work is cancelled.
  void close();
  bool is_closed();
  /// Whether the worker is free. After close() it stays free. Throws: ConfigError for the thread that has it.
  bool is_free();
  /// Runs `last` on the worker's thread after close(), when the worker is free, and then ends the thread.
  void end(std::function<void()> last);

  /// At the end of the process: cancels work, and waiting threads never return. Returns when no thread is inside that
  /// could use Python, or after some seconds.
  void exit();

 private:
  void live();
  // Call these with the lock:
  void check_other_thread() const;
  void start(std::function<void()> work);
  /// A cancel before the work's first step would be forgotten by it, so it is passed on later.
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
