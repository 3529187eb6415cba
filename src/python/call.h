// Runs every function of a binding on the session's worker, while the Python thread waits without the GIL.
#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine.h"

namespace lancet::python {

/// Runs `work` on the engine's worker. Meanwhile this thread passes messages to the listener, and checks for signals.
/// If a signal (Ctrl-C) or the listener raises an exception, the work is cancelled, and after its end the exception is
/// raised. If the work was finished anyway, `take_back` reverses it on the worker; without `take_back` it stays. Call
/// with the GIL. Throws: what `work` throws; Cancelled; nanobind::python_error; as Worker::try_begin().
void run_on_worker(Engine& engine, const std::function<void()>& work, const std::function<void()>& take_back = {});

/// As run_on_worker(), and returns what `work(session)` returns.
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

/// Ends the session: cancels running work, waits for its end, and frees the model. A second call has no effect.
void close(Engine& engine);
/// Ends the session at the interpreter's end. Waiting threads never return to Python.
void close_at_exit(Engine& engine);

}  // namespace lancet::python
