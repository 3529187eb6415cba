// What an edit() gave, kept for as long as Python looks at it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "lancet/session/session.h"

namespace lancet::python {

/// The report, and the batch's own tensors: those of the session's history, which go on living here.
struct Edited {
  std::shared_ptr<const EditReport> report = {};
  std::string report_json = {};
  EditedBatch batch = {};
  std::shared_ptr<const std::vector<std::string>> weights = {};  ///< names by change, then by system
};

/// What the session's last edit() made, whose report is given.
Edited edited(Session& session, EditReport report);

void bind_results(nanobind::module_& module);

}  // namespace lancet::python
