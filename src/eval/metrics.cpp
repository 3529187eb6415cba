#include "lancet/eval/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace lancet {
namespace {

constexpr size_t kDraws = 1000;
constexpr double kTail = 0.025;  // on each side
constexpr size_t kLeastRequests = 2;

/// How often each request is in each draw.
std::vector<std::vector<int>> draw_requests(size_t n_requests) {
  std::mt19937_64 random(0);  // its numbers are the same everywhere, those of std's distributions are not
  std::vector<std::vector<int>> draws(kDraws, std::vector<int>(n_requests));
  for (std::vector<int>& draw : draws)
    for (size_t i = 0; i < n_requests; ++i) ++draw[random() % n_requests];
  return draws;
}

double quantile(std::vector<double>& values, double share) {
  const auto place = values.begin() + std::lround(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

std::string_view unit_name(Unit unit) {
  constexpr std::array<std::string_view, 7> kNames{"share",  "difference", "bits",  "nats",
                                                   "cosine", "perplexity", "number"};
  return kNames[static_cast<size_t>(unit)];
}

std::string_view better_name(Better better) {
  constexpr std::array<std::string_view, 3> kNames{"higher", "lower", "none"};
  return kNames[static_cast<size_t>(better)];
}

Tallies pooled(std::span<const Tallies> requests) {
  Tallies all;
  for (const Tallies& request : requests) {
    for (const auto& [name, tally] : request) {
      all[name].sum += tally.sum;
      all[name].count += tally.count;
    }
  }
  return all;
}

std::map<std::string, double> means_of(const Tallies& tallies) {
  std::map<std::string, double> means;
  for (const auto& [name, tally] : tallies)
    if (const std::optional<double> mean = tally.mean()) means[name] = *mean;
  return means;
}

std::map<std::string, Interval, std::less<>> bootstrap_intervals(std::span<const Tallies> requests) {
  std::map<std::string, std::vector<Tally>, std::less<>> by_metric;
  for (size_t i = 0; i < requests.size(); ++i)
    for (const auto& [name, tally] : requests[i]) by_metric.try_emplace(name, requests.size()).first->second[i] = tally;
  const std::vector<std::vector<int>> draws = draw_requests(requests.size());
  std::map<std::string, Interval, std::less<>> intervals;
  for (const auto& [name, tallies] : by_metric) {
    const auto has_outcomes = [](const Tally& tally) { return tally.count > 0; };
    if (static_cast<size_t>(std::count_if(tallies.begin(), tallies.end(), has_outcomes)) < kLeastRequests) continue;
    std::vector<double> means;
    for (const std::vector<int>& draw : draws) {
      double sum = 0, count = 0;
      for (size_t i = 0; i < tallies.size(); ++i) {
        sum += draw[i] * tallies[i].sum;
        count += static_cast<double>(draw[i] * tallies[i].count);
      }
      if (count > 0) means.push_back(sum / count);
    }
    intervals[name] = {quantile(means, kTail), quantile(means, 1 - kTail)};
  }
  return intervals;
}

}  // namespace lancet
