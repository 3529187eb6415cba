#include "lancet/core/version.h"
#include "lancet/deltas/adapter.h"
#include "lancet/diff/diff_job.h"
#include "lancet/outcome/report_json.h"

namespace lancet {
namespace {

constexpr size_t kShownValues = 16;

Json spectrum_json(const ChangeSpectrum& spectrum) {
  Json values = Json::array(), energy = Json::object();
  for (const double value : std::span(spectrum.values).first(std::min(spectrum.values.size(), kShownValues)))
    values.push_back(value);
  for (const int64_t rank : kAdapterRanks)
    if (rank <= static_cast<int64_t>(spectrum.values.size())) energy[std::to_string(rank)] = spectrum.energy(rank);
  return {{"rank", spectrum.rank},
          {"rule", rank_rule_name(spectrum.rule)},
          {"low_rank", spectrum.is_low_rank()},
          {"noise", spectrum.noise},
          {"singular_values", std::move(values)},
          {"energy_in_rank", spectrum.energy(spectrum.rank)},
          {"energy", std::move(energy)}};
}

Json weight_json(const DifferentWeight& weight, bool writes) {
  Json json{{"weight", weight.name},
            {"shape", weight.shape},
            {"type", {{"before", weight.type_before}, {"after", weight.type_after}}},
            {"changed", weight.size.changed},
            {"norm", weight.size.norm},
            {"weight_norm", weight.size.weight_norm},
            {"relative_norm", weight.size.relative()},
            {"spectrum", weight.spectrum ? spectrum_json(*weight.spectrum) : Json(nullptr)}};
  if (writes)
    json["adapter"] = {{"directions", weight.written},
                       {"lost_norm", weight.lost_norm},
                       {"left_out", weight.left_out.empty() ? Json(nullptr) : Json(weight.left_out)}};
  return json;
}

Json value_json(const std::string& text) { return text.empty() ? Json(nullptr) : Json::parse(text); }

}  // namespace

std::string to_json(const DiffReport& report, const DiffJob& job) {
  Json different = Json::array(), shapes = Json::array(), config = Json::object(), files = Json::object();
  for (const DifferentWeight& weight : report.different) different.push_back(weight_json(weight, !job.out.empty()));
  for (const OtherShape& weight : report.other_shapes)
    shapes.push_back({{"weight", weight.name}, {"before", weight.before}, {"after", weight.after}});
  for (const DifferentKey& key : report.config)
    config[key.key] = {{"before", value_json(key.before)}, {"after", value_json(key.after)}};
  for (const DifferentFile& file : report.files) files[file.name] = file_difference_name(file.difference);
  const Json json{{"format", "lancet-diff-1"},
                  {"lancet", kVersion},
                  {"before", job.before.string()},
                  {"after", job.after.string()},
                  {"device", report.device},
                  {"seconds", report.seconds},
                  {"rank_tolerance", kRankTolerance},
                  {"weights",
                   {{"equal_bytes", report.equal_bytes},
                    {"equal_numbers", report.equal_numbers},
                    {"different", report.different.size()}}},
                  {"different", std::move(different)},
                  {"other_shapes", std::move(shapes)},
                  {"only_before", report.only_before},
                  {"only_after", report.only_after},
                  {"config", std::move(config)},
                  {"files", std::move(files)},
                  {"adapter", report.adapter ? Json{{"rank", report.adapter->rank},
                                                    {"modules", report.adapter->modules},
                                                    {"file_bytes", report.adapter->file_bytes}}
                                             : Json(nullptr)}};
  return dump_report(json);
}

}  // namespace lancet
