#include "lancet/eval/metrics.h"

namespace lancet {

std::span<const MetricRow> metric_table() {
  static constexpr std::array<MetricRow, 6> kMetrics{{
      {"efficacy_prob", MetricGroup::kEfficacy,
       "CounterFact ES: share of edited prompts after which the new target is likelier than the true one (mean token "
       "log-probability, "
       "strict)"},
      {"efficacy_argmax", MetricGroup::kEfficacy,
       "share of edited prompts after which every token of the new target is the likeliest in its place "
       "(teacher-forced)"},
      {"paraphrase_prob", MetricGroup::kParaphrase,
       "CounterFact PS: as efficacy_prob, over all paraphrases of all requests"},
      {"paraphrase_argmax", MetricGroup::kParaphrase, "as efficacy_argmax, over all paraphrases of all requests"},
      {"specificity_prob", MetricGroup::kSpecificity,
       "CounterFact NS: share of prompts about other subjects, of all requests, after which the true target stays "
       "likelier than the new one"},
      {"specificity_argmax", MetricGroup::kSpecificity,
       "share of prompts about other subjects, of all requests, after which every token of the true target is the "
       "likeliest in its place"},
  }};
  return kMetrics;
}

Tallies pooled(std::span<const Tallies> requests) {
  Tallies all;
  for (const Tallies& request : requests) {
    for (const auto& [name, tally] : request) {
      all[name].hits += tally.hits;
      all[name].prompts += tally.prompts;
    }
  }
  return all;
}

}  // namespace lancet
