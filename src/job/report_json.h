// What the JSON reports share.
#pragma once

#include <nlohmann/json.hpp>

#include "lancet/eval/metrics.h"
#include "lancet/job/statistics_report.h"
#include "lancet/runtime/memory_watch.h"

namespace lancet {

using Json = nlohmann::ordered_json;

/// null: n/a.
inline Json share_json(const Tally& tally) {
  const std::optional<double> share = tally.share();
  return share ? Json(*share) : Json(nullptr);
}

inline Json bytes_json(const PeakBytes& peaks) {
  Json json = Json::object();
  for (const auto& [device, bytes] : peaks) json[device] = bytes;
  return json;
}

/// Where a layer's imported moments came from.
inline Json import_json(const LayerStatistics& layer) {
  return {{"layer", layer.layer},
          {"file", layer.imported_file.string()},
          {"content_hash", layer.imported_hash},
          {"tokens", layer.tokens}};
}

/// Invalid UTF-8 cannot come in (readers refuse it), but a report must never be lost to a byte.
inline std::string dump_report(const Json& json) {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lancet
