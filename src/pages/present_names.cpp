#include "present_names.h"

#include <utility>

namespace lancet::page {
namespace {

void name(Json& section, const char* old_name, const char* present_name) {
  if (!section.is_object() || section.contains(present_name) || !section.contains(old_name)) return;
  Json value = section[old_name];
  section[present_name] = std::move(value);
}

}  // namespace

Json with_present_names(Json report) {
  if (!report.is_object()) return report;
  name(report, "costs", "side_effects");
  if (report.contains("verdicts")) name(report["verdicts"], "took", "success");
  if (report.contains("requests") && report["requests"].is_array())
    for (Json& request : report["requests"])
      if (request.is_object()) {
        if (request.contains("verdict")) name(request["verdict"], "took", "success");
        if (request.contains("value")) name(request["value"], "attained", "realised");
      }
  return report;
}

}  // namespace lancet::page
