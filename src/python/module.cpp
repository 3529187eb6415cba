// The extension module. People use the package lancet, whose classes describe the functions here in Python's terms.
#include <nanobind/nanobind.h>

#include "bindings.h"
#include "errors.h"
#include "lancet/core/version.h"
#include "results.h"
#include "tasks.h"

NB_MODULE(_lancet, module) {
  // sessions that still exist at the interpreter's end were ended before (lancet.Session)
  nanobind::set_leak_warnings(false);
  module.attr("version") = lancet::kVersion;
  lancet::python::register_errors();
  lancet::python::bind_results(module);
  lancet::python::bind_options(module);
  lancet::python::bind_session(module);
  lancet::python::bind_jobs(module);
  lancet::python::bind_push(module);
  lancet::python::bind_setup(module);
  lancet::python::bind_tasks(module);
}
