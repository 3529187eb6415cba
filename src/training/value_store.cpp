#include <torch/types.h>

#include <map>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/models/tensor_io.h"
#include "lancet/training/values.h"

namespace lancet {
namespace {

/// Increase the number when the file changes, or what is optimised.
constexpr SealedFormat kFormat{"lancet-values-8"};
constexpr int64_t kLossParts = 4;
constexpr const char* kBatchFact = "batch";

void add_prompt(ContentHash& hash, const LocatedPrompt& prompt) {
  hash.add(std::as_bytes(std::span(prompt.ids))).add(prompt.lookup);
}

/// Returns all numbers of all steps, one request after another: [steps of all, kLossParts] f64.
Tensor flat_losses(const OptimizedValues& values) {
  std::vector<double> numbers;
  for (const std::vector<ValueLoss>& losses : values.losses)
    for (const ValueLoss& loss : losses)
      numbers.insert(numbers.end(), {loss.total, loss.nll, loss.kl, loss.weight_decay});
  return torch::tensor(numbers, torch::kDouble).view({-1, kLossParts});
}

OptimizedValues read_values(const std::filesystem::path& path) {
  const SealedFile file = SealedFile::open(path, kFormat);
  if (file.fact(kBatchFact) != path.stem())
    throw CheckpointError(path.string() + ": not the values of the batch it is named after");
  const NamedTensors named = load_tensors(file);
  const std::map<std::string, Tensor> tensors(named.begin(), named.end());
  OptimizedValues values;
  values.z_ND = tensors.at("z");
  values.delta_ND = tensors.at("delta");
  values.initial_norms = to_doubles(tensors.at("initial_norms"));
  values.delta_norms = to_doubles(tensors.at("delta_norms"));
  const double* at = tensors.at("losses").const_data_ptr<double>();
  for (const double steps : to_doubles(tensors.at("steps"))) {
    values.losses.emplace_back();
    for (int64_t step = 0; step < static_cast<int64_t>(steps); ++step, at += kLossParts)
      values.losses.back().push_back({at[0], at[1], at[2], at[3]});
  }
  return values;
}

}  // namespace

std::filesystem::path ValueStore::file(const std::vector<const PreparedRequest*>& batch, const Setting& setting) const {
  const ValueOptions& options = setting.options;
  ContentHash hash;
  hash.add(kFormat.name).add(kVersion).add(setting.weights_key).add(setting.layer);
  hash.add(options.steps.value_or(0)).add(options.contexts_per_step);
  hash.add(static_cast<int64_t>(options.site)).add(static_cast<int64_t>(options.stop));
  for (const double option : {options.lr, options.weight_decay, options.clamp, options.kl, options.kept_weight,
                              options.stop_loss, options.nll_factor})
    hash.add(std::as_bytes(std::span(&option, 1)));
  for (const PreparedRequest* request : batch) {
    hash.add(static_cast<int64_t>(request->prompts.size()));
    for (const LocatedPrompt& prompt : request->prompts) add_prompt(hash, prompt);
    for (const TargetRow& row : request->rows) {
      add_prompt(hash, row);
      hash.add(std::as_bytes(std::span(row.target)));
    }
    add_prompt(hash, request->drift);
    hash.add(std::ssize(request->kept));
    for (const LocatedPrompt& prompt : request->kept) add_prompt(hash, prompt);
    for (const HeldValue& held : request->held)
      hash.add(held.tokens_before).add(std::as_bytes(std::span(held.delta_D)));
  }
  return folder_ / (hash.hex() + ".safetensors");
}

std::optional<OptimizedValues> ValueStore::load(const std::vector<const PreparedRequest*>& batch,
                                                const Setting& setting) const {
  const std::filesystem::path path = file(batch, setting);
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    return read_values(path);
  } catch (const CheckpointError& error) {
    log_warning(cat("values of an interrupted run are not used: ", error.what()));
    return std::nullopt;
  }
}

void ValueStore::save(const std::vector<const PreparedRequest*>& batch, const Setting& setting,
                      const OptimizedValues& values) const {
  std::vector<int64_t> steps;
  for (const std::vector<ValueLoss>& losses : values.losses) steps.push_back(static_cast<int64_t>(losses.size()));
  make_unfinished(folder_);
  const std::filesystem::path path = file(batch, setting);
  write_tensors(path, kFormat,
                {{"z", values.z_ND},
                 {"delta", values.delta_ND},
                 {"initial_norms", torch::tensor(values.initial_norms, torch::kDouble)},
                 {"delta_norms", torch::tensor(values.delta_norms, torch::kDouble)},
                 {"steps", torch::tensor(steps, torch::kLong)},
                 {"losses", flat_losses(values)}},
                {{kBatchFact, path.stem().string()}});
}

void ValueStore::clear() const { remove_unfinished(folder_); }

}  // namespace lancet
