// The JSON that pages get.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lancet/core/reporter.h"
#include "lancet/http/work_queue.h"
#include "lancet/journal/journal.h"

namespace lancet {

using Json = nlohmann::ordered_json;

std::string dump_line(const Json& json);

/// Returns a fact in the form that typed_requests() reads.
Json fact_json(const EditRequest& fact);

Json work_json(const WorkView& view, const StageProgress& progress);

/// Returns the current edits, the latest first, and those that were taken back.
Json edits_json(const Journal& journal);

/// Returns the part of an edit's report.json that a page shows: each fact before and after, the metrics, the warnings.
Json result_json(const std::string& report);

}  // namespace lancet
