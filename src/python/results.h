// The result of an edit(). It exists as long as Python uses it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "lancet/session/session.h"

namespace lancet::python {

/// The report, and the tensors of the batch, which are shared with the session's history.
struct Edited {
  std::shared_ptr<const EditReport> report = {};
  std::string report_json = {};
  EditedBatch batch = {};
  /// Names of the weights of the changes, then of the systems.
  std::shared_ptr<const std::vector<std::string>> weights = {};
};

/// Returns the result of the session's last edit(), with the given report.
Edited edited(Session& session, EditReport report);

void bind_results(nanobind::module_& module);

}  // namespace lancet::python
