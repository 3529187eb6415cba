#include "state_names.h"

#include <torch/types.h>

#include <map>
#include <optional>
#include <vector>

#include "history_keys.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/models/weight_table.h"

namespace lancet {
namespace {

[[noreturn]] void refuse_state(const std::string& name, const std::string& expected, const Tensor& got) {
  throw CheckpointError(cat(printable(name), ": expected ", expected, ", got ", at::toString(got.scalar_type()), " ",
                            shape_text(got.sizes())));
}

/// Checks the keys of earlier edits at a layer's down projection, one in each column. With a text budget, each column
/// also has the outputs for its key.
void check_keys(const std::string& name, const Tensor& tensor, const std::map<int64_t, int64_t>& inputs,
                int64_t d_model) {
  const std::optional<int64_t> layer = parse_whole_number(name.substr(kHistoryPrefix.size()));
  const auto found = inputs.find(layer.value_or(-1));
  if (found == inputs.end()) refuse_state(name, "the keys of one of the model's layers", tensor);
  const bool has_size =
      tensor.dim() == 2 && (tensor.size(0) == found->second || tensor.size(0) == found->second + d_model);
  if (!has_size || !tensor.is_floating_point())
    refuse_state(name, cat("floats [", found->second, ", n], a column for each key"), tensor);
}

/// Checks the tokens that count besides those of the text, one in each column: "curvature.keys.3" at the down
/// projection of layer 3, "curvature.gradients.3" at its output.
void check_curvature(const std::string& name, const Tensor& tensor, const std::map<int64_t, int64_t>& inputs,
                     int64_t d_model) {
  const std::vector<std::string> parts = split(name, '.');
  const auto found = inputs.find(parts.size() == 3 ? parse_whole_number(parts[2]).value_or(-1) : -1);
  if (found == inputs.end()) refuse_state(name, "one of the model's layers", tensor);
  const int64_t size = parts[1] == "keys" ? found->second : d_model;
  if (tensor.dim() != 2 || tensor.size(0) != size || !tensor.is_floating_point())
    refuse_state(name, cat("floats [", size, ", n], a column for each token"), tensor);
}

/// Checks the token ids of earlier requests, one request after another, or the lengths of each prompt and target.
void check_texts(const std::string& name, const Tensor& tensor) {
  const int64_t rows = name == "texts.ids" ? 1 : name == "texts.sizes" ? 2 : 0;
  if (tensor.dim() != 2 || tensor.size(0) != rows || tensor.scalar_type() != torch::kLong)
    refuse_state(name, "texts.ids [1, tokens] or texts.sizes [2, texts], whole numbers", tensor);
}

/// Checks the tensors of a state that have columns. Returns whether `name` is one of them.
bool check_columns(const std::string& name, const Tensor& tensor, const std::map<int64_t, int64_t>& inputs,
                   int64_t d_model) {
  if (name.starts_with(kHistoryPrefix))
    check_keys(name, tensor, inputs, d_model);
  else if (name.starts_with(kCurvaturePrefix))
    check_curvature(name, tensor, inputs, d_model);
  else if (name.starts_with(kTextsPrefix))
    check_texts(name, tensor);
  else
    return false;
  return true;
}

/// Checks running sums over the inputs and gradients of projections of one shape: "normaliser.48x32.mean"; ".scatter"
/// has sums of products of the gradients.
void check_normaliser(const std::string& name, const Tensor& tensor) {
  const std::vector<std::string> parts = split(name, '.');
  const std::vector<std::string> sizes = split(parts.size() == 3 ? parts[1] : "", 'x');
  const auto size = [&](size_t i) { return i < sizes.size() ? parse_whole_number(sizes[i]).value_or(-1) : -1; };
  if (parts.back() == "scatter") {
    if (tensor.dim() != 2 || tensor.size(0) != size(1) || tensor.size(1) != size(1))
      refuse_state(name, "a number for each two outputs", tensor);
    return;
  }
  const bool is_count = parts.back() == "count";
  if (is_count ? tensor.numel() != 1 : tensor.dim() != 1 || tensor.size(0) != size(0) + size(1))
    refuse_state(name, is_count ? "one number" : "a number for each input and output", tensor);
}

}  // namespace

void check_state(const StateStep& step, const ModelConfig& config) {
  std::map<int64_t, int64_t> inputs;  // input sizes by layer
  for (const WeightSpec& spec : weight_table(config))
    if (spec.id.kind == WeightKind::kDown) inputs[spec.id.layer] = spec.shape.back();
  for (const auto& [name, tensor] : step.appended)
    if (!check_columns(name, tensor, inputs, config.d_model)) refuse_state(name, "the keys of a layer", tensor);
  for (const auto& [name, tensor] : step.replaced) {
    if (check_columns(name, tensor, inputs, config.d_model)) continue;
    if (name.starts_with("normaliser.")) check_normaliser(name, tensor);
    if ((name.starts_with("auto.") || name.starts_with("norm_anchor.")) && tensor.numel() != 1)
      refuse_state(name, "one number", tensor);
  }
}

}  // namespace lancet
