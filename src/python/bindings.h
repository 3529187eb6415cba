// The parts of the module _lancet.
#pragma once

#include <nanobind/nanobind.h>

namespace lancet::python {

void bind_options(nanobind::module_& module);
void bind_session(nanobind::module_& module);
/// Functions of whole jobs. After bind_session().
void bind_jobs(nanobind::module_& module);

/// Published options, and other tools' files of hyper-parameters.
void bind_setup(nanobind::module_& module);
/// Edits into other programs' servers. After bind_session().
void bind_push(nanobind::module_& module);

}  // namespace lancet::python
