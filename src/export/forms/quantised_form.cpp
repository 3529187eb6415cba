// Edited weights back in the model's own quantised format. Errors of rounding are made good by the columns that are
// still to be rounded (GPTQ, arXiv 2210.17323), with what MEMIT solves by in the place of the second moments alone: H =
// alpha C + K K^T, so that what an edit says to its keys K survives.
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "edited_tensors.h"
#include "forms.h"
#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/core/strings.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/weight_table.h"
#include "lancet/quant/pack.h"
#include "lancet/quant/tensor_slice.h"
#include "weighted_error.h"

namespace lancet {
namespace {

/// Every context of a request as a request of its own: what an edit says, it says in each of them.
std::vector<PreparedRequest> by_context(std::vector<PreparedRequest> requests) {
  std::vector<PreparedRequest> each;
  for (PreparedRequest& request : requests)
    for (LocatedPrompt& prompt : request.prompts) {
      each.emplace_back().id = request.id;
      each.back().prompts.push_back(std::move(prompt));
    }
  return each;
}

class QuantisedForm final : public OutputForm {
 public:
  explicit QuantisedForm(OutputParts parts)
      : parts_(std::move(parts)), table_(resolve_weights(parts_.files.config, parts_.files.checkpoint)) {}

  void prepare(const EditContext& context, std::span<const EditRequest> edited, Entries entries) override {
    context_ = &context;
    losses_.clear();
    keys_.clear();
    std::vector<WeightId> by_lookup, by_text;
    for (const WeightTransaction::Entry& entry : entries) {
      if (spec_of(entry.id).packed.empty()) continue;
      const bool is_looked_up = parts_.editor.values() != nullptr && entry.id.kind == WeightKind::kDown;
      (is_looked_up ? by_lookup : by_text).push_back(entry.id);
    }
    if (!by_lookup.empty()) keep_lookup_keys(edited, std::move(by_lookup));
    if (!by_text.empty()) keep_text_keys(edited, by_text);
  }

  Tensor read_back(const WeightTransaction::Entry& entry) override {
    const WeightSpec& spec = spec_of(entry.id);
    if (spec.packed.empty()) return OutputForm::read_back(entry);
    // once for all ranks, which get the same bits
    const WeightDelta read = context_->solve(entry.id.layer, [&] { return DenseDelta{packed_and_read(spec, entry)}; });
    return std::get<DenseDelta>(read).full_OI.to(entry.master.device());
  }

  void write(Entries entries, const std::filesystem::path& folder) const override {
    std::map<std::string, Tensor> tensors;
    EditedTensors full(parts_.files);
    for (const WeightTransaction::Entry& entry : entries) {
      const WeightSpec& spec = spec_of(entry.id);
      if (spec.packed.empty()) {
        full.add(spec, entry);
        continue;
      }
      const std::vector<std::vector<Tensor>>& packed = packed_.at(entry.id);
      for (size_t i = 0; i < packed.size(); ++i)
        for (size_t p = 0; p < packed[i].size(); ++p)
          if (packed[i][p].defined()) put(packed[i][p], spec.packed[i], spec.packed[i].parts[p].tensor, tensors);
    }
    std::vector<TensorSource> replaced;
    for (const auto& [name, tensor] : tensors) replaced.push_back(to_source(name, tensor));
    for (const auto& [name, tensor] : full.all()) replaced.push_back(to_source(name, tensor));
    export_checkpoint(parts_.files.checkpoint, {.replaced = replaced}, folder);
  }

  std::string read_back_text() const override {
    return cat("the weights as they are read from the output, edited ones in ", parts_.files.config.quantised->method(),
               "'s format again");
  }

  std::vector<RequantisedWeight> losses() const override { return losses_; }

 private:
  const WeightSpec& spec_of(WeightId id) const {
    return *std::ranges::find_if(table_, [&](const WeightSpec& spec) { return spec.id == id; });
  }

  /// K of down projections: at the lookup tokens of every context, so that K K^T is that of a key for each request.
  void keep_lookup_keys(std::span<const EditRequest> edited, std::vector<WeightId> ids) {
    std::vector<PreparedRequest> requests = context_->prepare(edited, parts_.editor.target_rule());
    const auto contexts = static_cast<double>(requests.front().prompts.size());
    requests = by_context(std::move(requests));
    RequestStates states = context_->states_of(requests);
    std::ranges::sort(ids, {}, &WeightId::layer);
    for (const WeightId id : ids) {
      states.keep_from(id.layer);
      keys_[id] = states.collect_keys(id.layer, ContextMean::kPlain) / std::sqrt(contexts);
    }
  }

  /// K of other weights: at the tokens that predict the targets.
  void keep_text_keys(std::span<const EditRequest> edited, const std::vector<WeightId>& ids) {
    const CapturedGradients captured = context_->capture_token_gradients(context_->tokenize(edited), ids, {});
    for (size_t i = 0; i < ids.size(); ++i)
      keys_[ids[i]] = context_->to_solve_device(captured.weights[i].inputs_MI.t(), ids[i].layer);
  }

  /// Packs the weight's matrices and reads them as everybody else will. On root.
  Tensor packed_and_read(const WeightSpec& spec, const WeightTransaction::Entry& entry) {
    std::vector<std::vector<Tensor>>& packed = packed_[spec.id];
    packed.clear();
    const std::vector<Tensor> weights = packed_parts(spec, entry.master);
    const std::vector<Tensor> unedited = packed_parts(spec, entry.base);
    const int64_t parts = static_cast<int64_t>(weights.size());
    const bool is_down = spec.id.kind == WeightKind::kDown;
    const Tensor keys_FN = keys_.at(spec.id);
    Tensor moment = is_down ? parts_.moment(spec.id.layer) : Tensor();
    if (moment.defined()) moment = moment.to(keys_FN.device());
    std::vector<Tensor> read;
    for (int64_t i = 0; i < parts; ++i) {
      const auto at = static_cast<size_t>(i);
      const PackedSpec& matrix = spec.packed[at];
      // experts that no request reaches keep their bytes, the signs of zeros included
      const bool stays =
          parts > 1 && weights[at].equal(unedited[at].to(weights[at].device(), weights[at].scalar_type()));
      if (stays) {
        packed.push_back(before(matrix, weights[at].device()));
      } else {
        Tensor importance;
        if (needs_moments(parts_.options)) {
          const Tensor own_moment = parts > 1 ? moment[i] : moment;
          importance = importance_of(own_moment, keys_FN.narrow(0, i * own_moment.size(0), own_moment.size(0)));
          importance = importance.to(entry.master.device());
        }
        packed.push_back(repack(weights[at].contiguous(), matrix, before(matrix, Placement::host()), importance));
      }
      read.push_back(PackedMatrix::assemble(matrix, packed.back()).unpack(entry.original.scalar_type()));
    }
    const Tensor whole =
        (parts > 1 ? torch::cat(read, spec.parts_axis()) : read.front()).to(entry.master.scalar_type());
    note_losses(spec, entry, whole, keys_FN, moment);
    return whole;
  }

  /// What errors of a matrix's inputs are weighed by.
  Tensor importance_of(const Tensor& moment, const Tensor& keys) const {
    const OutputOptions& options = parts_.options;
    return options.rounding == OutputRounding::kEdits ? with_keys(moment.clone(), options.covariance_weight, keys)
                                                      : moment;
  }

  /// The matrix's tensors in the file.
  std::vector<Tensor> before(const PackedSpec& matrix, at::Device device) const {
    std::vector<Tensor> parts;
    for (const PackedPart& part : matrix.parts)
      parts.push_back(slice_of(to_tensor(parts_.files.checkpoint.view(part.tensor)), matrix).to(device));
    return parts;
  }

  /// Puts a part of a matrix among whole tensors of the file, on the host.
  void put(const Tensor& part, const PackedSpec& matrix, const std::string& name,
           std::map<std::string, Tensor>& tensors) const {
    Tensor& whole = tensors[name];
    if (matrix.slice.is_whole()) {
      whole = part.to(Placement::host()).contiguous();
      return;
    }
    if (!whole.defined()) whole = to_tensor(parts_.files.checkpoint.view(name)).clone();
    slice_of(whole, matrix).copy_(part);
  }

  void note_losses(const WeightSpec& spec, const WeightTransaction::Entry& entry, const Tensor& read,
                   const Tensor& keys_FN, const Tensor& moment) {
    const auto here = [&](const Tensor& tensor) { return tensor.to(keys_FN.device(), torch::kDouble); };
    const Tensor exact = here(entry.master), error = here(read) - exact;
    const Tensor change = exact - here(entry.base);
    RequantisedWeight lost{spec.name,
                           root_of_share(error.mm(keys_FN).square().sum(), change.mm(keys_FN).square().sum())};
    if (moment.defined())
      lost.text_error = root_of_share(weighted_square(error, moment), weighted_square(exact, moment));
    losses_.push_back(std::move(lost));
  }

  OutputParts parts_;
  std::vector<WeightSpec> table_;
  const EditContext* context_ = nullptr;
  /// [in, n] f64, on the layer's solve device: what the weight reads where the edits were made.
  std::map<WeightId, Tensor> keys_;
  std::map<WeightId, std::vector<std::vector<Tensor>>> packed_;  ///< tensors of each of the weight's matrices; on root
  std::vector<RequantisedWeight> losses_;
};

}  // namespace

std::unique_ptr<OutputForm> make_quantised_form(OutputParts parts) {
  return std::make_unique<QuantisedForm>(std::move(parts));
}

}  // namespace lancet
