// Edited weights back in the model's own quantised format. Errors of rounding are made good by the columns that are
// still to be rounded (GPTQ, arXiv 2210.17323), with what MEMIT solves by in the place of the second moments alone: H =
// alpha C + K K^T, so that what an edit says to its keys K survives.
#include <torch/types.h>

#include <cmath>
#include <map>

#include "edited_tensors.h"
#include "forms.h"
#include "lancet/core/strings.h"
#include "lancet/io/checkpoint_export.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/weight_table.h"
#include "lancet/quant/pack.h"

namespace lancet {
namespace {

double share(const Tensor& part, const Tensor& whole) {
  const double all = whole.item<double>();
  return all > 0 ? part.item<double>() / all : 0;
}

/// Keys of every context by themselves, where the edit speaks in each of them: [F, N * contexts], whose K K^T is that
/// of N keys.
Tensor lookup_keys(const EditContext& context, std::vector<PreparedRequest> requests, int64_t layer) {
  std::vector<PreparedRequest> each;
  const size_t contexts = requests.front().prompts.size();
  for (PreparedRequest& request : requests)
    for (LocatedPrompt& prompt : request.prompts) {
      each.emplace_back().id = request.id;
      each.back().prompts.push_back(std::move(prompt));
    }
  return context.collect_keys(each, layer, ContextMean::kPlain) / std::sqrt(static_cast<double>(contexts));
}

class QuantisedForm final : public OutputForm {
 public:
  explicit QuantisedForm(OutputParts parts)
      : parts_(std::move(parts)), table_(resolve_weights(parts_.files.config, parts_.files.checkpoint)) {}

  void prepare(const EditContext& context, std::span<const EditRequest> edited, Entries entries) override {
    context_ = &context;
    losses_.clear();
    for (const WeightTransaction::Entry& entry : entries)
      if (!spec_of(entry.id).packed.empty()) keys_[entry.id] = keys_of(context, edited, entry.id);
  }

  Tensor read_back(const WeightTransaction::Entry& entry) override {
    const WeightSpec& spec = spec_of(entry.id);
    if (spec.packed.empty()) return OutputForm::read_back(entry);
    // once for all ranks, which get the same bits
    const WeightDelta read = context_->solve(entry.id.layer, [&] { return DenseDelta{packed_and_read(spec, entry)}; });
    return std::get<DenseDelta>(read).full_OI.to(entry.master.device());
  }

  void write(Entries entries, const std::filesystem::path& folder) const override {
    std::vector<Tensor> kept;
    std::vector<TensorSource> replaced;
    const auto replace = [&](const std::string& name, const Tensor& tensor) {
      kept.push_back(tensor.to(Placement::host()).contiguous());
      replaced.push_back(to_source(name, kept.back()));
    };
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
          if (packed[i][p].defined()) replace(spec.packed[i].parts[p].tensor, packed[i][p]);
    }
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

  /// [in, n] f64: what the edited weight reads where the edits were made.
  Tensor keys_of(const EditContext& context, std::span<const EditRequest> edited, WeightId id) const {
    if (parts_.editor.needs().subject && id.kind == WeightKind::kDown)
      return lookup_keys(context, context.prepare(edited, parts_.editor.compat()), id.layer);
    const std::vector<WeightId> weights{id};
    const CapturedGradients captured = context.capture_token_gradients(context.tokenize(edited), weights, {});
    return context.to_solve_device(captured.weights.front().inputs_MI.t(), id.layer);
  }

  /// On root. Packs the weight's matrices and reads them as everybody else will.
  Tensor packed_and_read(const WeightSpec& spec, const WeightTransaction::Entry& entry) {
    std::vector<std::vector<Tensor>>& packed = packed_[spec.id];
    packed.clear();
    const std::vector<Tensor> weights = stored_parts(spec, entry.master);
    const int64_t parts = static_cast<int64_t>(weights.size());
    const bool is_down = spec.id.kind == WeightKind::kDown;
    const Tensor keys_FN = keys_.at(spec.id);
    Tensor moment = is_down ? parts_.moment(spec.id.layer) : Tensor();
    if (moment.defined()) moment = moment.to(keys_FN.device());
    std::vector<Tensor> read;
    for (int64_t i = 0; i < parts; ++i) {
      const auto at = static_cast<size_t>(i);
      Tensor importance;
      if (needs_moments(parts_.options)) {
        const Tensor own_moment = parts > 1 ? moment[i] : moment;
        const Tensor keys = keys_FN.narrow(0, i * own_moment.size(0), own_moment.size(0));
        importance = parts_.options.rounding == OutputRounding::kEdits
                         ? own_moment * parts_.options.covariance_weight + keys.mm(keys.t())
                         : own_moment;
        importance = importance.to(entry.master.device());
      }
      const PackedSpec& matrix = spec.packed[at];
      packed.push_back(repack(weights[at].contiguous(), matrix, before(matrix), importance));
      read.push_back(PackedMatrix::assemble(matrix, packed.back()).unpack(entry.original.scalar_type()));
    }
    const Tensor whole =
        (parts > 1 ? torch::cat(read, spec.parts_axis()) : read.front()).to(entry.master.scalar_type());
    note_losses(spec, entry, whole, keys_FN, moment);
    return whole;
  }

  std::vector<Tensor> before(const PackedSpec& matrix) const {
    std::vector<Tensor> parts;
    for (const PackedPart& part : matrix.parts) parts.push_back(to_tensor(parts_.files.checkpoint.view(part.tensor)));
    return parts;
  }

  void note_losses(const WeightSpec& spec, const WeightTransaction::Entry& entry, const Tensor& read,
                   const Tensor& keys_FN, const Tensor& moment) {
    const auto here = [&](const Tensor& tensor) { return tensor.to(keys_FN.device(), torch::kDouble); };
    const Tensor error = here(read) - here(entry.master);
    const auto of_text = [&](const Tensor& weight) {
      if (moment.dim() == 2) return (weight.mm(moment) * weight).sum().sqrt();
      const Tensor by_expert = weight.unflatten(1, {moment.size(0), -1}).transpose(0, 1);
      return (by_expert.bmm(moment) * by_expert).sum().sqrt();
    };
    const Tensor change = here(entry.master) - here(entry.base);
    RequantisedWeight lost{spec.name, share(error.mm(keys_FN).norm(), change.mm(keys_FN).norm())};
    if (moment.defined()) lost.text_error = share(of_text(error), of_text(here(entry.master)));
    losses_.push_back(std::move(lost));
  }

  OutputParts parts_;
  std::vector<WeightSpec> table_;
  const EditContext* context_ = nullptr;
  std::map<WeightId, Tensor> keys_;                              ///< [in, n]
  std::map<WeightId, std::vector<std::vector<Tensor>>> packed_;  ///< on root: of each of the weight's matrices
  std::vector<RequantisedWeight> losses_;
};

}  // namespace

std::unique_ptr<OutputForm> make_quantised_form(OutputParts parts) {
  return std::make_unique<QuantisedForm>(std::move(parts));
}

}  // namespace lancet
