#include "lancet/core/version.h"
#include "lancet/export/quantise_job.h"
#include "lancet/outcome/report_json.h"

namespace lancet {
namespace {

Json protocol_json(const QuantiseReport& report, const QuantiseJob& job) {
  return {{"method",
           "GPTQ (arXiv 2210.17323), layer by layer: the inputs of a layer are those after the quantised "
           "layers below it"},
          {"importance", report.requests.empty()
                             ? "H = C, the second moments of a matrix's inputs over the text"
                             : "H = covariance_weight * C + K K^T: C the second moments of a matrix's inputs over the "
                               "text, K its inputs at the requests' lookup tokens: of a plain prompt the subject's "
                               "last token, or without a subject the prompt's last one"},
          {"error",
           "sqrt(trace(E H E^T) / trace(W H W^T)), E the matrix as it is read less the one in full precision; "
           "nearest_error: each number rounded to the nearest of its group, on the same inputs"},
          {"residual", "|E K| / |W K|; null where no request's lookup token comes"},
          {"text", job.corpus.empty() ? "self: sampled from the model" : job.corpus.string()},
          {"tokens", report.tokens},
          {"covariance_weight", report.requests.empty() ? Json(nullptr) : Json(job.covariance_weight)},
          {"seed", job.run.seed}};
}

}  // namespace

std::string to_json(const QuantiseReport& report, const QuantiseJob& job) {
  Json matrices = Json::array();
  for (const QuantisedMatrix& matrix : report.matrices)
    matrices.push_back({{"tensor", matrix.name},
                        {"error", matrix.error},
                        {"nearest_error", matrix.nearest_error},
                        {"residual", number_json(matrix.residual)},
                        {"nearest_residual", number_json(matrix.nearest_residual)}});
  Json json = {
      {"format", "lancet-quantise-1"},
      {"lancet", kVersion},
      {"model", {{"folder", job.model.string()}, {"content_hash", report.content_hash}}},
      {"quantised", {{"format", quantised_format_name(job.format)}, {"bits", job.bits}, {"group", kQuantisedGroup}}},
      {"dtype", report.dtype},
      {"devices", report.devices},
      {"protocol", protocol_json(report, job)},
      {"requests", report.requests.empty()
                       ? Json(nullptr)
                       : Json{{"file", report.requests_file.string()}, {"count", report.requests.size()}}},
      {"bytes", {{"before", report.bytes_before}, {"after", report.bytes_after}}},
      {"kept_bytes", report.kept_bytes},
      {"seconds", report.seconds},
      {"in_full_precision", report.in_full_precision},
      {"matrices", std::move(matrices)}};
  if (report.after)
    json["metrics"] = figures_json(report.after->metrics, {report.before->totals, report.before->requests},
                                   {report.after->totals, report.after->requests}, "prompts");
  return dump_report(json);
}

}  // namespace lancet
