// A LoRA adapter beside the untouched model.
#include <torch/types.h>

#include <map>

#include "forms.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/adapter.h"

namespace lancet {
namespace {

int64_t directions(const WeightTransaction::Entry& entry) {
  int64_t sum = 0;
  for (const WeightDelta& delta : entry.deltas) {
    const auto* factors = std::get_if<LowRankDelta>(&delta);
    if (factors == nullptr) return std::min(entry.master.size(0), entry.master.size(1));
    sum += factors->left_OR.size(1);
  }
  return sum;
}

class AdapterForm final : public OutputForm {
 public:
  explicit AdapterForm(const ModelFiles& files) : files_(files) {}

  void prepare(const EditContext&, std::span<const EditRequest>, Entries entries) override {
    truncated_.clear();
    // what fits an adapter is in it as it is
    if (std::ranges::all_of(entries, [&](const auto& entry) { return directions(entry) <= options().largest_rank; }))
      return;
    for (WeightChanges& weight : changes_in_adapter(files_.config, changes(entries), options()))
      truncated_[weight.id] = std::move(weight.deltas);
  }

  Tensor read_back(const WeightTransaction::Entry& entry) override {
    const auto truncated = truncated_.find(entry.id);
    if (truncated == truncated_.end()) return entry.master;
    Tensor weight = entry.base.to(entry.master.device(), entry.master.scalar_type(), /*non_blocking=*/false,
                                  /*copy=*/true);
    for (const WeightDelta& delta : truncated->second)
      weight += to_dense(delta).to(weight.device(), weight.scalar_type());
    return weight;
  }

  void write(Entries entries, const std::filesystem::path& folder) const override {
    write_adapter(folder, files_.config, changes(entries), options());
  }

  std::string read_back_text() const override {
    return "the weights with the adapter's added to them, in the type of the run";
  }

 private:
  AdapterOptions options() const {
    return {.base_model = files_.checkpoint.folder().string(), .excess = ExcessRank::kTruncate};
  }

  static std::vector<WeightChanges> changes(Entries entries) {
    std::vector<WeightChanges> all;
    for (const WeightTransaction::Entry& entry : entries) all.push_back({entry.id, entry.deltas});
    return all;
  }

  const ModelFiles& files_;
  std::map<WeightId, std::vector<WeightDelta>> truncated_;
};

}  // namespace

std::unique_ptr<OutputForm> make_adapter_form(const ModelFiles& files) { return std::make_unique<AdapterForm>(files); }

}  // namespace lancet
