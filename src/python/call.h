// How every function of a binding runs: on the session's worker, while the Python thread waits without the GIL.
#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine.h"

namespace lancet::python {

/// Runs `work` on the engine's worker. Meanwhile this thread tells the listener what is said, and looks for signals;
/// where one raises (Ctrl-C), or the listener does, the work is cancelled, its end is awaited, and that is raised. What
/// was done all the same by then, `take_back` takes back, on the worker; without one it stays. With the GIL.
/// Throws: what `work` throws; Cancelled; nanobind::python_error; as Worker::try_begin().
void run_on_worker(Engine& engine, const std::function<void()>& work, const std::function<void()>& take_back = {});

/// Runs `work` likewise, and returns what `work(session)` returns.
template <typename Work>
auto call(Engine& engine, const Work& work, const std::function<void(Session&)>& take_back = {}) {
  using Result = std::invoke_result_t<const Work&, Session&>;
  const auto back = take_back ? std::function<void()>([&] { take_back(engine.opened()); }) : std::function<void()>();
  if constexpr (std::is_void_v<Result>) {
    run_on_worker(
        engine, [&] { work(engine.opened()); }, back);
  } else {
    std::optional<Result> result;
    run_on_worker(
        engine, [&] { result.emplace(work(engine.opened())); }, back);
    return std::move(*result);
  }
}

/// Ends the session: what runs is cancelled and awaited, then the model is freed. A second call does nothing.
void close(Engine& engine);
/// Ends the session at the interpreter's end, where threads that wait never return to Python.
void close_at_exit(Engine& engine);

}  // namespace lancet::python
