// What pages are told, as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lancet/core/reporter.h"
#include "lancet/http/work_queue.h"
#include "lancet/journal/journal.h"

namespace lancet {

using Json = nlohmann::ordered_json;

std::string dump_line(const Json& json);

/// A fact as typed_requests() takes it.
Json fact_json(const EditRequest& fact);

Json work_json(const WorkView& view, const StageProgress& progress);

/// The edits that stand, the latest first, and what was taken back.
Json edits_json(const Journal& journal);

/// What a page shows of an edit's report.json: each fact before and after, the metrics, the warnings.
Json result_json(const std::string& report);

}  // namespace lancet
