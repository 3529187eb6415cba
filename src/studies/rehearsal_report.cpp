#include "lancet/outcome/report_json.h"
#include "lancet/studies/rehearsal.h"

namespace lancet {

std::string to_json(const RehearsalReport& report) {
  Json stages = Json::array();
  for (const RehearsedStage& stage : report.stages)
    stages.push_back({{"stage", stage.cost.stage},
                      {"seconds", stage.cost.seconds},
                      {"peak_bytes", bytes_json(stage.cost.peaks)},
                      {"estimate_seconds", stage.estimate_s},
                      {"estimate_of", stage.how}});
  return dump_report({{"format", "lancet-rehearsal-1"},
                      {"devices", report.devices},
                      {"run_dtype", report.model_dtype},
                      {"requests", report.requests},
                      {"edited", report.edited},
                      {"evaluated", report.evaluated},
                      {"values_at_a_time", report.together},
                      {"stages", stages},
                      {"estimate_seconds", report.estimate_s()},
                      {"limits", report.limits}});
}

}  // namespace lancet
