// What the JSON reports share.
#pragma once

#include <nlohmann/json.hpp>

#include "lancet/eval/metrics.h"

namespace lancet {

using Json = nlohmann::ordered_json;

/// null: n/a.
inline Json share_json(const Tally& tally) {
  const std::optional<double> share = tally.share();
  return share ? Json(*share) : Json(nullptr);
}

/// Invalid UTF-8 cannot come in (readers refuse it), but a report must never be lost to a byte.
inline std::string dump_report(const Json& json) {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lancet
