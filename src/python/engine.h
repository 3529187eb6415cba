// The contents of a Python session: its worker, its model, and the listener.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "lancet/session/session.h"
#include "worker.h"

namespace lancet::python {

struct Engine {
  Engine(nanobind::object to, Delivery delivery) : listener(std::move(to)), worker(delivery) {}

  /// Called with ("log", level, text) or ("progress", stage, done, total, ...); a weak reference.
  nanobind::object listener;
  std::optional<Session> session;  ///< nullopt before it is opened; created, used and destroyed on the worker's thread
  Worker worker;                   ///< the last member, so that its thread ends before the session is destroyed

  /// Throws: ConfigError if no session is open.
  Session& opened();
};

}  // namespace lancet::python
