// Defines metrics and the outcomes that they are computed from. A number is never reported without its protocol.
// Defined in evaluate.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lancet {

enum class Unit {
  kShare,       ///< share of prompts or tokens, 0 to 1
  kDifference,  ///< difference of two probabilities, -1 to 1
  kBits,
  kNats,
  kCosine,
  kPerplexity,
  kNumber  ///< a number that another program defines
};
/// Returns "share", "difference", ...
std::string_view unit_name(Unit unit);

enum class Better { kHigher, kLower, kNeither };
/// Returns "higher", "lower", "none".
std::string_view better_name(Better better);

struct MetricRow {
  std::string name;
  std::string group;     ///< the protocol that `evaluate:` names
  std::string protocol;  ///< definition, in one sentence
  Unit unit = Unit::kShare;
  Better better = Better::kHigher;
  std::string asked = {};  ///< hash of all prompts and targets that it is computed from; empty: not known
};

/// The sum and the number of outcomes of one metric.
struct Tally {
  double sum = 0;
  int64_t count = 0;  ///< number of outcomes: prompts, or what the protocol counts; 0: the metric is n/a

  void add(double outcome) {
    sum += outcome;
    ++count;
  }
  std::optional<double> mean() const {
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
  }
};

/// Metric name -> outcomes, for one request or for all. A metric without outcomes is n/a.
using Tallies = std::map<std::string, Tally, std::less<>>;

/// Returns the outcomes of all requests together. Each outcome counts once, so requests with more prompts weigh more,
/// unless the protocol gives one outcome per request.
Tallies pooled(std::span<const Tallies> requests);

/// Returns the mean of each metric that has outcomes.
std::map<std::string, double> means_of(const Tallies& tallies);

struct Interval {
  double low = 0;
  double high = 0;
};

/// Returns the interval that holds 95 % of the means when as many requests are drawn with replacement (percentile
/// bootstrap, 1,000 draws, the same draws for all metrics). Metrics with outcomes in fewer than ten requests have none.
std::map<std::string, Interval, std::less<>> bootstrap_intervals(std::span<const Tallies> requests);

}  // namespace lancet
