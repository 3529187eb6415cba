// A LoRA adapter beside the untouched model.
#include <torch/types.h>

#include <algorithm>
#include <map>

#include "forms.h"
#include "lancet/deltas/adapter.h"

namespace lancet {
namespace {

class AdapterForm final : public OutputForm {
 public:
  explicit AdapterForm(const ModelFiles& files) : files_(files) {}

  void prepare(const EditContext& context, std::span<const EditRequest>, Entries entries) override {
    context_ = &context;
    entries_ = entries;
    truncated_.clear();
    // what fits an adapter is in it as it is
    fits_ = std::ranges::all_of(
        entries, [&](const auto& entry) { return directions_of(entry.deltas) <= options().largest_rank; });
  }

  Tensor read_back(const WeightTransaction::Entry& entry) override {
    if (fits_) return entry.master;
    // once for all ranks, which get the same bits
    const WeightDelta read = context_->solve(entry.id.layer, [&] { return DenseDelta{truncated(entry)}; });
    return std::get<DenseDelta>(read).full_OI.to(entry.master.device());
  }

  void write(Entries entries, const std::filesystem::path& folder) const override {
    write_adapter(folder, files_.config, changes_of(entries), options());
  }

  std::string read_back_text() const override {
    return "the weights with the adapter's added to them, in the type of the run";
  }

 private:
  AdapterOptions options() const {
    return {.base_model = files_.checkpoint.folder().string(), .excess = ExcessRank::kTruncate};
  }

  /// Returns, on root, the weight with the changes that the adapter has in the place of its own.
  Tensor truncated(const WeightTransaction::Entry& entry) {
    if (truncated_.empty())  // of all weights at once: a rank is the whole adapter's
      for (WeightChanges& weight : changes_in_adapter(files_.config, changes_of(entries_), options()))
        truncated_[weight.id] = std::move(weight.deltas);
    const auto found = truncated_.find(entry.id);
    if (found == truncated_.end()) return entry.master;  // its changes are zeros
    Tensor weight = entry.base.to(entry.master.device(), entry.master.scalar_type(), /*non_blocking=*/false,
                                  /*copy=*/true);
    for (const WeightDelta& delta : found->second) weight += to_dense(delta).to(weight.device(), weight.scalar_type());
    return weight;
  }

  const ModelFiles& files_;
  const EditContext* context_ = nullptr;
  Entries entries_;  ///< valid until the next prepare() at most
  bool fits_ = true;
  std::map<WeightId, std::vector<WeightDelta>> truncated_;  ///< changes as the adapter has them; on root
};

}  // namespace

std::unique_ptr<OutputForm> make_adapter_form(const ModelFiles& files) { return std::make_unique<AdapterForm>(files); }

}  // namespace lancet
