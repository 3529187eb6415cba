#include "lancet/edit/value_store.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

/// Raised when the file or what is optimised changes.
constexpr std::string_view kFormat = "lancet-values-4";
constexpr int64_t kLossParts = 4;

void add_prompt(ContentHash& hash, const LocatedPrompt& prompt) {
  hash.add(std::as_bytes(std::span(prompt.ids))).add(prompt.lookup);
}

/// Every number of every step, one request after another: [steps of all, kLossParts] f64.
Tensor flat_losses(const OptimizedValues& values) {
  std::vector<double> numbers;
  for (const std::vector<ValueLoss>& losses : values.losses)
    for (const ValueLoss& loss : losses)
      numbers.insert(numbers.end(), {loss.total, loss.nll, loss.kl, loss.weight_decay});
  return torch::tensor(numbers, torch::kDouble).view({-1, kLossParts});
}

Tensor read_tensor(const SafetensorsReader& file, std::string_view name) {
  return to_tensor(file.view(name)).clone();  // the file goes away before the values do
}

OptimizedValues read_values(const std::filesystem::path& path, size_t n_requests) {
  const SafetensorsReader file = SafetensorsReader::open(path);
  OptimizedValues values;
  values.z_ND = read_tensor(file, "z");
  values.initial_norms = to_doubles(read_tensor(file, "initial_norms"));
  values.delta_norms = to_doubles(read_tensor(file, "delta_norms"));
  const Tensor steps = read_tensor(file, "steps"), losses = read_tensor(file, "losses");
  const bool is_whole = values.z_ND.size(0) == static_cast<int64_t>(n_requests) &&
                        values.initial_norms.size() == n_requests && values.delta_norms.size() == n_requests &&
                        steps.numel() == static_cast<int64_t>(n_requests) &&
                        steps.sum().item<int64_t>() == losses.size(0) && losses.size(1) == kLossParts;
  if (!is_whole) throw CheckpointError(path.string() + ": not the values of the batch it is named after");
  const double* at = losses.const_data_ptr<double>();
  for (size_t i = 0; i < n_requests; ++i) {
    values.losses.emplace_back();
    for (int64_t step = 0; step < steps[static_cast<int64_t>(i)].item<int64_t>(); ++step, at += kLossParts)
      values.losses.back().push_back({at[0], at[1], at[2], at[3]});
  }
  return values;
}

}  // namespace

std::filesystem::path ValueStore::file(const std::vector<const PreparedRequest*>& batch, const Setting& setting) const {
  const ValueOptions& options = setting.options;
  ContentHash hash;
  hash.add(kFormat).add(kVersion).add(setting.weights_key).add(setting.layer);
  hash.add(options.steps).add(options.contexts_per_step);
  hash.add(static_cast<int64_t>(options.site)).add(static_cast<int64_t>(options.stop));
  for (const double option :
       {options.lr, options.weight_decay, options.clamp, options.kl, options.stop_loss, options.nll_factor})
    hash.add(std::as_bytes(std::span(&option, 1)));
  for (const PreparedRequest* request : batch) {
    hash.add(static_cast<int64_t>(request->prompts.size())).add(std::as_bytes(std::span(request->target)));
    for (const LocatedPrompt& prompt : request->prompts) add_prompt(hash, prompt);
    for (const LocatedPrompt& row : request->rows) add_prompt(hash, row);
    add_prompt(hash, request->drift);
  }
  return folder_ / (hash.hex() + ".safetensors");
}

std::optional<OptimizedValues> ValueStore::load(const std::vector<const PreparedRequest*>& batch,
                                                const Setting& setting) const {
  const std::filesystem::path path = file(batch, setting);
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    return read_values(path, batch.size());
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
  write_tensors(file(batch, setting),
                {{"z", values.z_ND},
                 {"initial_norms", torch::tensor(values.initial_norms, torch::kDouble)},
                 {"delta_norms", torch::tensor(values.delta_norms, torch::kDouble)},
                 {"steps", torch::tensor(steps, torch::kLong)},
                 {"losses", flat_losses(values)}},
                {{"format", std::string(kFormat)}});
}

void ValueStore::clear() const { remove_unfinished(folder_); }

}  // namespace lancet
