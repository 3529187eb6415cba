#include <torch/types.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "adapter_factors.h"
#include "adapter_files.h"
#include "adapter_modules.h"
#include "delta_shape.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/adapter.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"

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

/// Each changed weight's whole change.
using Sums = std::map<WeightId, LowRankDelta>;

Sums sum_changes(const ModelConfig& config, std::span<const WeightChanges> changes) {
  std::vector<std::string> problems;
  std::map<WeightId, std::vector<WeightDelta>> by_weight;
  for (const WeightChanges& weight : changes) {
    std::vector<WeightDelta>& deltas = by_weight[weight.id];
    deltas.insert(deltas.end(), weight.deltas.begin(), weight.deltas.end());
  }
  Sums sums;
  for (const auto& [id, deltas] : by_weight) {
    const WeightSpec spec = weight_spec(config, id);
    if (const std::string why = why_no_lora(config, spec); !why.empty()) {
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
    throw ConfigError(cat("adapter: PEFT cannot load changes of these weights; write the whole checkpoint:\n  ",
                          join(problems, "\n  ")));
  return sums;
}

/// What a module's pair is made from.
struct Pair {
  const LinearModule* module = nullptr;
  std::vector<WeightId> weights = {};
  LowRankDelta factors = {};
  Spectrum spectrum = {};
  int64_t numeric_rank = 0;

  int64_t directions() const { return weights.empty() ? 0 : factors.left_OR.size(1); }
  int64_t needed_rank() const { return std::min(directions(), numeric_rank); }
};

Pair make_pair_of(const LinearModule& module, const Sums& sums) {
  Pair pair{.module = &module};
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

/// What PEFT stacks: all experts of a layer, gate and up projections together. It finds these only where the layer's
/// down projections have pairs too (transformers_weight_conversion.py, `base_layer`).
using Stack = std::pair<int64_t, LayerPart>;

std::optional<Stack> stack_of(const LinearModule& module) {
  const WeightSpec& spec = module.parts.front().spec;
  if (spec.stored.tensors.size() == 1) return std::nullopt;
  return Stack{spec.id.layer, role_of(spec.id.kind).part};
}

std::vector<Pair> make_pairs(const std::vector<LinearModule>& modules, const Sums& sums) {
  std::vector<Pair> pairs;
  std::set<Stack> stacks;
  for (const LinearModule& module : modules) {
    pairs.push_back(make_pair_of(module, sums));
    if (const auto stack = stack_of(module); stack && !pairs.back().weights.empty()) {
      stacks.insert(*stack);
      stacks.emplace(stack->first, LayerPart::kMlpOutput);
    }
  }
  std::erase_if(pairs, [&](const Pair& pair) {
    const std::optional<Stack> stack = stack_of(*pair.module);
    return pair.weights.empty() && !(stack && stacks.contains(*stack));
  });
  if (std::ranges::all_of(pairs, [](const Pair& pair) { return pair.weights.empty(); }))
    throw ConfigError("adapter: expected changes of weights, got none that changes anything");
  return pairs;
}

int64_t choose_rank(const std::vector<Pair>& pairs, const AdapterOptions& options) {
  int64_t needed = 1;
  std::vector<std::string> problems;
  for (const Pair& pair : pairs) {
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

struct StoredPair {
  Tensor a_RI = {};
  Tensor b_OR = {};
};

/// All of an adapter, in memory.
struct MadeAdapter {
  std::vector<LinearModule> modules = {};
  std::vector<Pair> pairs = {};  ///< of some of them
  int64_t rank = 1;
  std::vector<StoredPair> stored = {};  ///< by pair
};

StoredPair store(const Pair& pair, int64_t rank, at::ScalarType type) {
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

AdapterModule report_of(const Pair& pair, const StoredPair& stored) {
  const LowRankDelta written = without_zeros({stored.b_OR.to(at::kDouble), stored.a_RI.to(at::kDouble)});
  const bool is_same = written.left_OR.equal(pair.factors.left_OR) && written.right_RI.equal(pair.factors.right_RI);
  return {.name = pair.module->name,
          .weights = pair.weights,
          .directions = pair.directions(),
          .numeric_rank = pair.numeric_rank,
          .norm = pair.spectrum.norm(),
          .lost_norm = is_same ? 0 : difference_norm(pair.factors, written)};
}

std::string adapter_config_text(const std::vector<Pair>& pairs, int64_t rank, const AdapterOptions& options) {
  using Json = nlohmann::ordered_json;
  Json modules = Json::array();
  bool is_transposed = false;
  for (const Pair& pair : pairs) {
    modules.push_back(pair.module->name);
    is_transposed = is_transposed || pair.module->parts.front().spec.stored.layout == Layout::kColumns;
  }
  const Json config{{"alpha_pattern", Json::object()},
                    {"base_model_name_or_path", options.base_model.empty() ? Json() : Json(options.base_model)},
                    {"bias", "none"},
                    {"fan_in_fan_out", is_transposed},
                    {"inference_mode", true},
                    {"init_lora_weights", true},
                    {"lora_alpha", rank},
                    {"lora_dropout", 0.0},
                    {"modules_to_save", nullptr},
                    {"peft_type", "LORA"},
                    {"r", rank},
                    {"rank_pattern", Json::object()},
                    {"target_modules", modules},
                    {"task_type", "CAUSAL_LM"},
                    {"use_dora", false},
                    {"use_rslora", false}};
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

MadeAdapter make_adapter(const ModelConfig& config, std::span<const WeightChanges> changes,
                         const AdapterOptions& options) {
  const at::ScalarType type = factor_type(options);
  check_largest_rank(options);
  MadeAdapter made{.modules = linear_modules(config)};
  made.pairs = make_pairs(made.modules, sum_changes(config, changes));
  made.rank = choose_rank(made.pairs, options);
  for (const Pair& pair : made.pairs) made.stored.push_back(store(pair, made.rank, type));
  return made;
}

}  // namespace

std::vector<WeightChanges> changes_in_adapter(const ModelConfig& config, std::span<const WeightChanges> changes,
                                              const AdapterOptions& options) {
  const MadeAdapter made = make_adapter(config, changes, options);
  std::vector<ModulePair> pairs;
  for (size_t i = 0; i < made.pairs.size(); ++i)
    pairs.push_back({made.pairs[i].module,
                     without_zeros({made.stored[i].b_OR.to(at::kFloat), made.stored[i].a_RI.to(at::kFloat)})});
  return changes_of(config, pairs);
}

AdapterReport write_adapter(const std::filesystem::path& folder, const ModelConfig& config,
                            std::span<const WeightChanges> changes, const AdapterOptions& options) {
  const MadeAdapter made = make_adapter(config, changes, options);
  AdapterReport report{.rank = made.rank};
  std::vector<TensorSource> sources;
  for (size_t i = 0; i < made.pairs.size(); ++i) {
    const Pair& pair = made.pairs[i];
    if (!pair.weights.empty()) report.modules.push_back(report_of(pair, made.stored[i]));
    const std::string name = cat(kAdapterPrefix, pair.module->name);
    sources.push_back(to_source(cat(name, kLoraA), made.stored[i].a_RI));
    sources.push_back(to_source(cat(name, kLoraB), made.stored[i].b_OR));
  }
  write_safetensors(folder / kAdapterWeights, sources, {{"format", "pt"}});
  write_text_file(folder / kAdapterConfig, adapter_config_text(made.pairs, report.rank, options));
  report.file_bytes = static_cast<int64_t>(std::filesystem::file_size(folder / kAdapterWeights));
  return report;
}

}  // namespace lancet
