#include "call.h"

#include <chrono>
#include <thread>

#include "errors.h"
#include "lancet/core/error.h"

namespace lancet::python {
namespace {

namespace nb = nanobind;

/// How often signals are checked.
constexpr std::chrono::milliseconds kSignalWait{50};

/// Stops a thread at the process's end. It must not wait for the GIL, because Python would then end the thread inside
/// C++ frames.
[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

Seen wait_without_gil(Worker& worker, std::chrono::milliseconds most) {
  PyThreadState* const state = PyEval_SaveThread();
  const Seen seen = worker.wait(most);
  if (seen == Seen::kExit) sleep_for_ever();
  PyEval_RestoreThread(state);
  return seen;
}

void tell(const nb::object& listener, const Event& event) {
  if (event.progress) {
    const StageProgress& now = *event.progress;
    listener("progress", to_str(now.stage), now.done, now.total, to_str(now.unit), to_str(now.line), now.is_finished);
  } else {
    listener("log", static_cast<int>(event.level), to_str(event.text));
  }
}

/// A call of one thread, which waits for the worker.
class Waiting {
 public:
  explicit Waiting(Engine& engine) : engine_(engine), worker_(engine.worker) { worker_.enter(); }
  ~Waiting() { worker_.leave(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// Throws: what a signal raises while other work runs; as Worker::try_begin().
  void begin(const std::function<void()>& work) {
    while (!worker_.try_begin(work)) {
      wait_without_gil(worker_, kSignalWait);
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  /// Waits for the end of the work. After an exception the work is cancelled, and the listener is no longer called.
  void wait() {
    Seen seen = Seen::kNothing;
    while (seen != Seen::kDone) {
      seen = wait_without_gil(worker_, kSignalWait);
      if (seen == Seen::kEvents) {
        for (const Event& event : worker_.take_events()) attempt([&] { tell(engine_.listener, event); });
        worker_.events_handled();
      }
      attempt([] {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      });
    }
  }

  std::exception_ptr raised() const { return raised_; }

 private:
  template <typename Work>
  void attempt(const Work& work) {
    if (raised_) return;
    try {
      work();
    } catch (...) {
      raised_ = std::current_exception();
      worker_.cancel();
    }
  }

  Engine& engine_;
  Worker& worker_;
  std::exception_ptr raised_;
};

}  // namespace

Session& Engine::opened() {
  if (!session) throw ConfigError("no model was opened");
  return *session;
}

void run_on_worker(Engine& engine, const std::function<void()>& work, const std::function<void()>& take_back) {
  Worker& worker = engine.worker;
  Waiting waiting(engine);
  waiting.begin(work);
  waiting.wait();
  const bool is_ended = waiting.raised() || worker.was_cancelled();
  const std::exception_ptr error = worker.error();
  const bool is_late = is_ended && !error && take_back;
  if (is_late) {
    worker.go_on(take_back);
    waiting.wait();
  }
  const std::exception_ptr last = worker.finish();
  if (is_late && last) std::rethrow_exception(last);
  if (waiting.raised()) std::rethrow_exception(waiting.raised());
  if (error) std::rethrow_exception(error);
  if (is_late) throw Cancelled();
}

void close(Engine& engine) {
  static_cast<void>(engine.worker.is_free());  // throws if it is called from a callback of a call
  engine.worker.close();
  {
    const Waiting inside(engine);
    while (!engine.worker.is_free()) {
      wait_without_gil(engine.worker, kSignalWait);
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }
  const nb::gil_scoped_release released;
  engine.worker.end([&engine] { engine.session.reset(); });
}

void close_at_exit(Engine& engine) {
  const nb::gil_scoped_release released;
  engine.worker.exit();
  engine.worker.end([&engine] { engine.session.reset(); });
}

}  // namespace lancet::python
