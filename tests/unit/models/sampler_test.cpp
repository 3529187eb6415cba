#include "lancet/models/generate.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "lancet/core/error.h"

namespace lancet {
namespace {

/// What the options say, from their definitions alone: id -> probability.
std::map<TokenId, double> expected_distribution(const std::vector<double>& logits, const SamplingOptions& options) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), TokenId{0});
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (options.top_k > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(options.top_k)));
  const auto weight = [&](TokenId id) { return std::exp(logits[static_cast<size_t>(id)] / options.temperature); };
  double all = 0, sum = 0, kept = 0;
  for (const TokenId id : ids) all += weight(id);
  size_t count = 0;
  while (count < ids.size() && (count == 0 || sum < options.top_p)) sum += weight(ids[count++]) / all;
  ids.resize(count);
  for (const TokenId id : ids) kept += weight(id);
  std::map<TokenId, double> shares;
  for (const TokenId id : ids) shares[id] = weight(id) / kept;
  return shares;
}

/// `n_draws` draws with these logits, several of each of 100 rows.
std::vector<TokenId> draws(const std::vector<double>& logits, const SamplingOptions& options, int64_t n_draws) {
  std::vector<int64_t> numbers(100);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  const Tensor row = torch::tensor(logits, torch::kDouble).to(torch::kFloat).unsqueeze(0);
  Sampler sampler(options, numbers);
  std::vector<TokenId> drawn;
  while (static_cast<int64_t>(drawn.size()) < n_draws)
    for (const TokenId id : sampler.next(row.expand({100, row.size(1)}))) drawn.push_back(id);
  return drawn;
}

const std::vector<double> kLogits{0.3, 2.0, -1.0, 1.5, 1.0, -3.0, 0.9, 0.1};

/// 99.99 % quantiles of chi-square with 1, 2, ... degrees of freedom.
constexpr double kChiSquare[] = {15.14, 18.42, 21.11, 23.51, 25.74, 27.86, 29.88};

TEST(Sampler, DrawsFromTheSetsThatTheOptionsName) {
  constexpr int64_t kDraws = 20'000;
  size_t smallest = kLogits.size();
  for (const int64_t top_k : {0, 2, 3, 5, 100}) {
    for (const double top_p : {1.0, 0.95, 0.7, 0.3}) {
      for (const double temperature : {0.5, 1.0, 2.5}) {
        const SamplingOptions options{.temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = 7};
        const std::map<TokenId, double> shares = expected_distribution(kLogits, options);
        smallest = std::min(smallest, shares.size());
        std::map<TokenId, int64_t> counts;
        for (const TokenId id : draws(kLogits, options, kDraws)) ++counts[id];
        double chi_square = 0;
        for (const auto& [id, share] : shares) {
          const double wanted = share * kDraws;
          chi_square +=
              (static_cast<double>(counts[id]) - wanted) * (static_cast<double>(counts[id]) - wanted) / wanted;
        }
        EXPECT_EQ(counts.size(), shares.size()) << "top_k " << top_k << ", top_p " << top_p << ", T " << temperature;
        if (shares.size() > 1) {
          EXPECT_LT(chi_square, kChiSquare[shares.size() - 2])
              << "top_k " << top_k << ", top_p " << top_p << ", T " << temperature;
        }
      }
    }
  }
  EXPECT_EQ(smallest, 1u);
}

TEST(Sampler, ANucleusEndsWhereItsShareIsReached) {
  // probabilities 1/2, 1/4, 1/8, 1/8: exact in f32 as in f64
  const std::vector<double> logits{std::log(0.25), std::log(0.5), std::log(0.125), std::log(0.125)};
  for (const int64_t top_k : {0, 4}) {
    for (const auto& [top_p, count] : {std::pair{0.4, 1u}, {0.55, 2u}, {0.7, 2u}, {0.8, 3u}, {0.9, 4u}}) {
      std::map<TokenId, int64_t> counts;
      for (const TokenId id : draws(logits, {.top_k = top_k, .top_p = top_p, .seed = 1}, 4000)) ++counts[id];
      EXPECT_EQ(counts.size(), count) << "top_k " << top_k << ", top_p " << top_p;
      EXPECT_GT(counts[1], 0);
    }
  }
}

TEST(Sampler, GreedyIsTheLikeliestWhateverElseIsSaid) {
  for (const SamplingOptions& options : {SamplingOptions{}, SamplingOptions{.temperature = 9, .top_p = 0.5, .seed = 4}})
    for (const TokenId id : draws(kLogits, options, 100)) EXPECT_EQ(id, 1);
}

TEST(Sampler, ARowsNumbersDependOnTheSeedAndItsNumberAlone) {
  const Tensor logits = torch::zeros({3, 1000});
  for (const SamplingOptions& options :
       {SamplingOptions{.top_k = 0, .seed = 5}, SamplingOptions{.top_k = 500, .seed = 5},
        SamplingOptions{.top_k = 0, .top_p = 0.9, .seed = 5}}) {
    Sampler three(options, std::vector<int64_t>{4, 9, 2}), one(options, std::vector<int64_t>{9});
    std::vector<TokenId> among, alone;
    for (int step = 0; step < 4; ++step) {
      if (step == 2) three.keep({2, 1});
      const int64_t n_rows = step < 2 ? 3 : 2;
      among.push_back(three.next(logits.slice(0, 0, n_rows))[1]);
      alone.push_back(one.next(logits.slice(0, 0, 1))[0]);
    }
    EXPECT_EQ(among, alone);
    SamplingOptions other = options;
    other.seed = 6;
    EXPECT_NE(Sampler(other, std::vector<int64_t>{9}).next(logits.slice(0, 0, 1))[0], alone[0]);
  }
}

TEST(Sampler, NamesOptionsOutOfTheirRange) {
  try {
    SamplingOptions{.temperature = 0, .top_k = -1, .top_p = 1.5}.check();
    FAIL();
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    for (const char* part : {"temperature: 0", "top-k: -1", "top-p: 1.5"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  EXPECT_THROW(SamplingOptions{.temperature = NAN}.check(), ConfigError);
  EXPECT_NO_THROW(SamplingOptions{}.check());
}

}  // namespace
}  // namespace lancet
