#include "adapter_pairs.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "delta_shape.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

at::ScalarType factor_type(const AdapterOptions& options) {
  if (options.dtype == DType::kF32) return at::kFloat;
  if (options.dtype == DType::kBF16) return at::kBFloat16;
  if (options.dtype == DType::kF16) return at::kHalf;
  throw ConfigError(cat("adapter: type of the factors: expected F32, BF16 or F16, got ", dtype_name(options.dtype)));
}

void check_largest_rank(const AdapterOptions& options) {
  if (std::ranges::find(kAdapterRanks, options.largest_rank) != std::end(kAdapterRanks)) return;
  std::vector<std::string> ranks;
  for (const int64_t rank : kAdapterRanks) ranks.push_back(std::to_string(rank));
  throw ConfigError(cat("adapter: largest rank: expected one of ", join(ranks), ", got ", options.largest_rank));
}

/// The whole change of each changed weight.
using Sums = std::map<WeightId, LowRankDelta>;

Sums sum_changes(const ModelConfig& config, std::span<const WeightChanges> changes, const AdapterReader& reader) {
  std::vector<std::string> problems;
  std::map<WeightId, std::vector<WeightDelta>> by_weight;
  for (const WeightChanges& weight : changes) {
    std::vector<WeightDelta>& deltas = by_weight[weight.id];
    deltas.insert(deltas.end(), weight.deltas.begin(), weight.deltas.end());
  }
  Sums sums;
  for (const auto& [id, deltas] : by_weight) {
    const WeightSpec spec = weight_spec(config, id);
    if (const std::string why = reader.why_not(config, spec); !why.empty()) {
      problems.push_back(cat(spec.name, ": ", why));
      continue;
    }
    for (const WeightDelta& delta : deltas)
      if (!fits_weight(delta, spec.shape)) throw std::logic_error(spec.name + ": a change of another shape");
    LowRankDelta sum = summed_factors(deltas, spec.shape[0], spec.shape[1]);
    if (!sum.left_OR.isfinite().all().item<bool>() || !sum.right_RI.isfinite().all().item<bool>())
      throw NumericError(cat("adapter: ", spec.name, ": expected finite changes, got NaN or infinity"));
    sums.emplace(id, std::move(sum));
  }
  if (!problems.empty())
    throw ConfigError(cat("adapter: ", reader.name,
                          " cannot load changes of these weights; write the whole checkpoint:\n  ",
                          join(problems, "\n  ")));
  return sums;
}

AdapterPair make_pair_of(const LinearModule& module, const Sums& sums) {
  AdapterPair pair{.module = &module};
  std::vector<Tensor> left, right;
  for (const ModulePart& part : module.parts) {
    const auto sum = sums.find(part.spec.id);
    if (sum == sums.end()) continue;
    const LowRankDelta own =
        without_zeros({left_in_module(module, part, sum->second.left_OR), right_in_module(part, sum->second.right_RI)});
    if (own.left_OR.size(1) == 0) continue;
    pair.weights.push_back(part.spec.id);
    left.push_back(own.left_OR);
    right.push_back(own.right_RI);
  }
  if (pair.weights.empty()) return pair;
  pair.factors = {torch::cat(left, 1), torch::cat(right, 0)};
  pair.spectrum = spectrum_of(pair.factors);
  pair.numeric_rank = pair.spectrum.numeric_rank(kRankTolerance);
  return pair;
}

/// The modules that PEFT stacks: all experts of a layer, gate and up projections together. It finds these only if the
/// layer's down projections have pairs, too (transformers_weight_conversion.py, `base_layer`).
using Stack = std::pair<int64_t, LayerPart>;

std::optional<Stack> stack_of(const LinearModule& module) {
  const WeightSpec& spec = module.parts.front().spec;
  if (spec.experts == 1) return std::nullopt;
  return Stack{spec.id.layer, role_of(spec.id.kind).part};
}

std::vector<AdapterPair> make_pairs(const std::vector<LinearModule>& modules, const Sums& sums) {
  std::vector<AdapterPair> pairs;
  std::set<Stack> stacks;
  for (const LinearModule& module : modules) {
    pairs.push_back(make_pair_of(module, sums));
    if (const auto stack = stack_of(module); stack && !pairs.back().weights.empty()) {
      stacks.insert(*stack);
      stacks.emplace(stack->first, LayerPart::kMlpOutput);
    }
  }
  std::erase_if(pairs, [&](const AdapterPair& pair) {
    const std::optional<Stack> stack = stack_of(*pair.module);
    return pair.weights.empty() && !(stack && stacks.contains(*stack));
  });
  if (std::ranges::all_of(pairs, [](const AdapterPair& pair) { return pair.weights.empty(); }))
    throw ConfigError("adapter: expected changes of weights, got none that changes anything");
  return pairs;
}

int64_t choose_rank(const std::vector<AdapterPair>& pairs, const AdapterOptions& options) {
  int64_t needed = 1;
  std::vector<std::string> problems;
  for (const AdapterPair& pair : pairs) {
    needed = std::max(needed, std::min(pair.needed_rank(), options.largest_rank));
    if (pair.needed_rank() <= options.largest_rank) continue;
    problems.push_back(cat(pair.module->name, ": rank ", pair.needed_rank(), "; truncating would lose ",
                           100 * pair.spectrum.norm_beyond(options.largest_rank) / pair.spectrum.norm(),
                           " % of the change's norm"));
  }
  if (!problems.empty() && options.excess == ExcessRank::kRefuse)
    throw ConfigError(
        cat("adapter: expected changes of at most ", options.largest_rank,
            " directions, got more; allow a higher rank or truncating, or write the whole checkpoint:\n  ",
            join(problems, "\n  ")));
  return *std::ranges::lower_bound(kAdapterRanks, needed);
}

StoredPair store(const AdapterPair& pair, int64_t rank, at::ScalarType type) {
  const auto options = torch::TensorOptions(type);
  StoredPair stored{torch::zeros({rank, pair.module->n_inputs}, options),
                    torch::zeros({pair.module->n_outputs, rank}, options)};
  if (pair.weights.empty()) return stored;
  const LowRankDelta kept = pair.directions() <= rank ? pair.factors : pair.spectrum.balanced(rank);
  const int64_t used = kept.left_OR.size(1);
  stored.a_RI.slice(0, 0, used).copy_(kept.right_RI);
  stored.b_OR.slice(1, 0, used).copy_(kept.left_OR);
  if (!stored.a_RI.isfinite().all().item<bool>() || !stored.b_OR.isfinite().all().item<bool>())
    throw NumericError(cat("adapter: ", pair.module->name, ": expected factors in the range of ", toString(type),
                           ", got larger ones; choose another type"));
  return stored;
}

AdapterModule report_of(const AdapterPair& pair, const StoredPair& stored) {
  const LowRankDelta written = without_zeros({stored.b_OR.to(at::kDouble), stored.a_RI.to(at::kDouble)});
  const bool is_same = written.left_OR.equal(pair.factors.left_OR) && written.right_RI.equal(pair.factors.right_RI);
  return {.name = pair.module->name,
          .weights = pair.weights,
          .directions = pair.directions(),
          .numeric_rank = pair.numeric_rank,
          .norm = pair.spectrum.norm(),
          .lost_norm = is_same ? 0 : difference_norm(pair.factors, written)};
}

}  // namespace

AdapterReport MadeAdapter::report() const {
  AdapterReport report{.rank = rank};
  for (size_t i = 0; i < pairs.size(); ++i)
    if (!pairs[i].weights.empty()) report.modules.push_back(report_of(pairs[i], stored[i]));
  return report;
}

MadeAdapter make_adapter(const ModelConfig& config, std::span<const WeightChanges> changes,
                         const AdapterOptions& options, const AdapterReader& reader) {
  const at::ScalarType type = factor_type(options);
  check_largest_rank(options);
  MadeAdapter made{.modules = linear_modules(config)};
  made.pairs = make_pairs(made.modules, sum_changes(config, changes, reader));
  made.rank = choose_rank(made.pairs, options);
  for (const AdapterPair& pair : made.pairs) made.stored.push_back(store(pair, made.rank, type));
  return made;
}

}  // namespace lancet
