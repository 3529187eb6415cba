// evaluate.lm_eval of a job that runs in Python: lm-evaluation-harness asks the job's model.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "lancet/eval/task_runner.h"

namespace lancet::python {

/// Calls lancet.lm_eval on the working thread, which takes the GIL for it.
std::shared_ptr<const TaskRunner> make_task_runner();

void bind_tasks(nanobind::module_& module);

}  // namespace lancet::python
