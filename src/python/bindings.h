// The parts of the module _lancet.
#pragma once

#include <nanobind/nanobind.h>

namespace lancet::python {

void bind_options(nanobind::module_& module);
void bind_session(nanobind::module_& module);
/// Binds the functions for whole jobs. Call it after bind_session().
void bind_jobs(nanobind::module_& module);

/// Binds published options, and hyper-parameter files of other tools.
void bind_setup(nanobind::module_& module);
/// Binds the functions for pushing edits to servers. Call it after bind_session().
void bind_push(nanobind::module_& module);

}  // namespace lancet::python
