// The metrics by name, with the protocol each follows. A number without its protocol is not reported.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lancet {

/// What `evaluate:` names.
enum class MetricGroup { kEfficacy, kParaphrase, kSpecificity, kGeneration };

struct MetricGroupRow {
  MetricGroup group;
  std::string_view name;
};
inline constexpr std::array<MetricGroupRow, 4> kMetricGroups{{{MetricGroup::kEfficacy, "efficacy"},
                                                              {MetricGroup::kParaphrase, "paraphrase"},
                                                              {MetricGroup::kSpecificity, "specificity"},
                                                              {MetricGroup::kGeneration, "generation"}}};

struct MetricRow {
  std::string_view name;
  MetricGroup group;
  std::string_view protocol;  ///< definition, in one sentence
};

/// The numeric metrics, in the order they are shown.
std::span<const MetricRow> metric_table();

/// Outcomes of one metric, prompt by prompt.
struct Tally {
  int64_t hits = 0;
  int64_t prompts = 0;  ///< 0: the metric is n/a (no true target, no such prompts)

  /// Share of prompts in [0, 1].
  std::optional<double> share() const {
    return prompts == 0 ? std::nullopt : std::optional(static_cast<double>(hits) / static_cast<double>(prompts));
  }
};

/// Metric name -> outcomes, of one request or of all; a name without prompts is n/a.
using Tallies = std::map<std::string, Tally, std::less<>>;

/// All requests' prompts together: each prompt counts once, so requests with more prompts weigh more.
Tallies pooled(std::span<const Tallies> requests);

}  // namespace lancet
