// Writes the output of a trace: trace.json, trace.csv, heat maps.
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/outcome/report_json.h"
#include "lancet/pages/plot.h"
#include "lancet/studies/trace_job.h"

namespace lancet {
namespace {

constexpr const char* kProtocol =
    "indirect effect: probability of the clean run's likeliest next token, in the corrupted run with one clean state "
    "put "
    "back, minus that in the corrupted run; means over the noise samples. Total effect: clean minus corrupted";

std::vector<std::vector<double>> to_rows(const Tensor& map_RL) {
  std::vector<std::vector<double>> rows;
  for (int64_t row = 0; row < map_RL.size(0); ++row) rows.push_back(to_doubles(map_RL[row]));
  return rows;
}

/// The content of the maps: the tokens of a single fact, or the averages by class over several facts.
struct ShownMap {
  std::vector<std::string> rows;
  std::vector<int64_t> facts;  ///< number of facts behind each row
  Tensor effect_RL;
};

ShownMap shown_map(const TraceReport& report, size_t kind) {
  ShownMap map;
  if (report.facts.size() == 1) {
    const ReportedFact& fact = report.facts.front();
    for (size_t token = 0; token < fact.tokens.size(); ++token) {
      const auto place = static_cast<int64_t>(token);
      const bool in_subject = place >= fact.traced.prompt.first && place < fact.traced.prompt.end;
      map.rows.push_back(cat(fact.tokens[token], in_subject ? "*" : ""));
    }
    map.facts.assign(map.rows.size(), 1);
    map.effect_RL = fact.trace.restored_TL[kind] - fact.trace.corrupted;
    return map;
  }
  for (int64_t c = 0; c < kTokenClasses; ++c) map.rows.emplace_back(token_class_name(static_cast<TokenClass>(c)));
  map.facts = report.summary.facts_by_class;
  map.effect_RL = report.summary.kinds[kind].effect_CL;
  return map;
}

Json fact_json(const ReportedFact& fact, const TraceOptions& options) {
  Json maps = Json::object();
  for (size_t k = 0; k < options.kinds.size(); ++k)
    maps[std::string(trace_kind_name(options.kinds[k]))] = to_rows(fact.trace.restored_TL[k] - fact.trace.corrupted);
  return {{"id", fact.id},
          {"index", fact.traced.index},
          {"prompt", fact.prompt},
          {"subject", fact.subject},
          {"target_true", fact.target_true ? Json(*fact.target_true) : Json(nullptr)},
          {"object", fact.object},
          {"object_id", fact.traced.object},
          {"tokens", fact.tokens},
          {"subject_tokens", {fact.traced.prompt.first, fact.traced.prompt.end}},
          {"clean", fact.trace.clean},
          {"corrupted", fact.trace.corrupted},
          {"indirect_effect", std::move(maps)}};
}

Json average_json(const TraceReport& report) {
  const TraceSummary& summary = report.summary;
  Json classes = Json::array(), kinds = Json::object();
  for (size_t c = 0; c < summary.facts_by_class.size(); ++c)
    classes.push_back({{"class", token_class_name(static_cast<TokenClass>(c))}, {"facts", summary.facts_by_class[c]}});
  for (const KindSummary& kind : summary.kinds)
    kinds[std::string(trace_kind_name(kind.kind))] = {
        {"peak_layer", kind.peak_layer}, {"peak", kind.peak}, {"indirect_effect", to_rows(kind.effect_CL)}};
  return {{"clean", summary.clean},
          {"corrupted", summary.corrupted},
          {"total_effect", summary.total_effect},
          {"token_classes", std::move(classes)},
          {"kinds", std::move(kinds)},
          {"suggested_layers", summary.suggested_layers}};
}

}  // namespace

std::string to_json(const TraceReport& report, const TraceJob& job) {
  Json kinds = Json::array(), facts = Json::array();
  for (const TraceKind kind : report.options.kinds) kinds.push_back(trace_kind_name(kind));
  for (const ReportedFact& fact : report.facts) facts.push_back(fact_json(fact, report.options));
  return dump_report(
      {{"format", "lancet-trace-1"},
       {"lancet", kVersion},
       {"protocol", kProtocol},
       {"model", {{"folder", job.model.string()}, {"content_hash", report.content_hash}, {"run_dtype", report.dtype}}},
       {"facts_file", job.facts.empty() ? Json(nullptr) : Json(job.facts.string())},
       {"options",
        {{"kinds", std::move(kinds)},
         {"samples", report.options.samples},
         {"noise", report.options.noise},
         {"embedding_deviation", report.embedding_deviation},
         {"window", report.options.window},
         {"seed", report.options.seed}}},
       {"layers", report.n_layers},
       {"traced", report.facts.size()},
       {"unknown", report.unknown},
       {"average", average_json(report)},
       {"seconds", report.seconds},
       {"facts", std::move(facts)}});
}

std::string to_csv(const TraceReport& report) {
  std::string out = "kind,token,layer,indirect_effect,facts\n";
  for (size_t k = 0; k < report.options.kinds.size(); ++k) {
    const ShownMap map = shown_map(report, k);
    const std::vector<std::vector<double>> rows = to_rows(map.effect_RL);
    for (size_t r = 0; r < rows.size(); ++r)
      for (size_t layer = 0; layer < rows[r].size(); ++layer)
        out += cat(trace_kind_name(report.options.kinds[k]), ",", csv_text(map.rows[r]), ",", layer, ",",
                   Json(rows[r][layer]).dump(), ",", map.facts[r], "\n");
  }
  return out;
}

std::string to_svg(const TraceReport& report, size_t kind) {
  ShownMap shown = shown_map(report, kind);
  const TraceKind which = report.options.kinds[kind];
  const bool is_one = report.facts.size() == 1;
  const std::string what =
      which == TraceKind::kHidden
          ? std::string("a layer's hidden state")
          : cat(trace_kind_name(which), " outputs, ", counted(static_cast<size_t>(report.options.window), "layer"));
  HeatMap map{.title = cat("Indirect effect of ", what),  // longer texts are cut
              .subtitle = is_one ? cat("p(", report.facts.front().object, "), corrupted tokens: *")
                                 : cat("mean over ", counted(report.facts.size(), "fact"), ", mean total effect ",
                                       Json(std::round(1e4 * report.summary.total_effect) / 1e4).dump()),
              .rows = std::move(shown.rows),
              .values = to_doubles(shown.effect_RL.flatten())};
  for (int64_t layer = 0; layer < shown.effect_RL.size(1); ++layer) map.columns.push_back(std::to_string(layer));
  return heat_map(map);
}

}  // namespace lancet
