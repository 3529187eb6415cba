// What a Python session holds: its worker, the model that the worker works on, and who is told.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "lancet/session/session.h"
#include "worker.h"

namespace lancet::python {

struct Engine {
  Engine(nanobind::object to, Delivery delivery) : listener(std::move(to)), worker(delivery) {}

  nanobind::object listener;       ///< called with ("log", level, text) or ("progress", stage, done, total, ...); weak
  std::optional<Session> session;  ///< none before it was opened; made, used and ended on the worker's thread
  Worker worker;                   ///< last: its thread ends before the session does

  /// Throws: ConfigError where none was opened.
  Session& opened();
};

}  // namespace lancet::python
