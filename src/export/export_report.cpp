#include "lancet/core/version.h"
#include "lancet/export/export_job.h"
#include "lancet/outcome/report_json.h"

namespace lancet {

std::string to_json(const AdapterReport& report, const ExportAdapterJob& job) {
  Json modules = Json::array();
  for (const AdapterModule& module : report.modules)
    modules.push_back({{"module", module.name},
                       {"directions", module.directions},
                       {"numeric_rank", module.numeric_rank},
                       {"norm", module.norm},
                       {"lost_norm", module.lost_norm},
                       {"relative_loss", module.relative_loss()}});
  return dump_report({{"format", "lancet-export-1"},
                      {"lancet", kVersion},
                      {"edited", job.edited.string()},
                      {"adapter",
                       {{"format", adapter_format_name(job.format)},
                        {"dtype", dtype_name(job.dtype)},
                        {"rank", report.rank},
                        {"largest_rank", job.largest_rank},
                        {"file_bytes", report.file_bytes}}},
                      {"modules", std::move(modules)}});
}

std::string to_json(const ExportModelReport& report, const ExportModelJob& job) {
  return dump_report({{"format", "lancet-export-1"},
                      {"lancet", kVersion},
                      {"model", job.model.string()},
                      {"files", report.files},
                      {"left_out", report.left_out}});
}

}  // namespace lancet
