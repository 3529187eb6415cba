#include "lancet/deltas/weight_update.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

Tensor whole(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

void add_bytes(ContentHash& hash, const Tensor& tensor) {
  const Tensor here = tensor.to(Placement::host()).contiguous();
  hash.add(std::as_bytes(std::span(static_cast<const char*>(here.const_data_ptr()), here.nbytes())));
}

void add_bytes(ContentHash& hash, const WeightDelta& delta) {
  if (const auto* low_rank = std::get_if<LowRankDelta>(&delta)) {
    add_bytes(hash, low_rank->left_OR);
    add_bytes(hash, low_rank->right_RI);
  } else {
    add_bytes(hash, std::get<DenseDelta>(delta).full_OI);
  }
}

Tensor copy_as(const Tensor& tensor, at::ScalarType dtype) {
  return tensor.to(dtype, /*non_blocking=*/false, /*copy=*/true);
}

/// Describes an edited weight that is not finite in `dtype`. `what`: how the message calls it.
NumericError out_of_range(const std::string& name, const WeightTransaction::Entry& entry, at::ScalarType dtype,
                          std::string_view what) {
  if (!entry.base.isfinite().all().item<bool>())
    return NumericError(cat(name, ": has NaN or infinity in the model's own files: take another copy of the model"));
  return NumericError(cat(name, ": the edited weight, ", what, ", is not finite: its largest entry is ",
                          entry.master.abs().max().item<double>(), ", the largest ", dtype_name(to_dtype(dtype)),
                          " number is ", dtype == at::kHalf ? 65504.0 : 3.4e38,
                          ". Lower the rate (editor.lr, editor.values.lr, editor.repair.lr), hold the change back more "
                          "(covariance_weight, ridge), or use a model in BF16 or F32"));
}

}  // namespace

WeightDelta contiguous(const WeightDelta& delta) {
  if (const auto* dense = std::get_if<DenseDelta>(&delta)) return DenseDelta{whole(dense->full_OI)};
  const LowRankDelta& factors = std::get<LowRankDelta>(delta);
  return LowRankDelta{whole(factors.left_OR), whole(factors.right_RI)};
}

int64_t directions_of(std::span<const WeightDelta> deltas) {
  int64_t sum = 0;
  for (const WeightDelta& delta : deltas) {
    if (const auto* dense = std::get_if<DenseDelta>(&delta))
      return std::min(dense->full_OI.size(0), dense->full_OI.size(1));
    sum += std::get<LowRankDelta>(delta).left_OR.size(1);
  }
  return sum;
}

WeightDelta moved_to(const WeightDelta& delta, at::Device device) {
  if (const auto* dense = std::get_if<DenseDelta>(&delta)) return DenseDelta{dense->full_OI.to(device)};
  const LowRankDelta& factors = std::get<LowRankDelta>(delta);
  return LowRankDelta{factors.left_OR.to(device), factors.right_RI.to(device)};
}

Tensor to_dense(const WeightDelta& delta) {
  if (const auto* low_rank = std::get_if<LowRankDelta>(&delta))
    return torch::matmul(low_rank->left_OR, low_rank->right_RI);
  return std::get<DenseDelta>(delta).full_OI;
}

WeightTransaction::~WeightTransaction() {
  try {
    rollback();
  } catch (const std::exception& error) {
    log_warning(cat("the weights could not be put back: ", error.what()));
  }
}

void WeightTransaction::rollback() {
  put_unedited();
  entries_.clear();
}

void WeightTransaction::put_unedited() {
  const torch::NoGradGuard no_grad;
  for (const Entry& entry : entries_) model_.put_weight(entry.id, entry.original);
}

const WeightTransaction::Entry* WeightTransaction::find(WeightId id) const {
  const auto found = std::ranges::find(entries_, id, &Entry::id);
  return found != entries_.end() ? &*found : nullptr;
}

Tensor WeightTransaction::unedited(WeightId id) const {
  if (const Entry* entry = find(id)) return entry->base;
  return stored_ ? stored_(id) : model_.weight(id);
}

const WeightDelta& WeightTransaction::apply(WeightId id, WeightDelta delta) {
  const torch::NoGradGuard no_grad;
  const std::string name = weight_name(model_.config(), id);
  const at::Device device = model_.placement().solve_device(id.layer);
  const Tensor& current = model_.weight(id);
  delta = contiguous(filter_ ? filter_(id, current.to(device), delta) : delta);
  const Tensor change = to_dense(delta);
  check_device(change, device, name + ": delta");
  if (change.sizes() != current.sizes())
    throw std::logic_error(cat(name, ": delta: expected ", current.sizes(), ", got ", change.sizes()));
  // this also finds finite entries whose squares are not finite
  if (const double size = change.norm().item<double>(); !std::isfinite(size))
    throw NumericError(cat(
        name, ": the computed change has the norm ", size, ": nothing is changed. Lower the rate ",
        "(editor.lr, editor.values.lr, editor.repair.lr), or hold the change back more (covariance_weight, ridge)"));

  auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& known) { return known.id == id; });
  if (entry == entries_.end()) {
    const Tensor original = current.to(device), stored = stored_ ? stored_(id) : current;
    const Tensor base = stored.is_same(current) ? original : stored;
    entries_.push_back({id, original, base, copy_as(base.to(device), model_.placement().value_dtype()), {}});
    entry = entries_.end() - 1;
  }
  entry->master += change.to(entry->master.scalar_type());
  entry->deltas.push_back(std::move(delta));
  const at::ScalarType dtype = current.scalar_type();
  Tensor edited = copy_as(entry->master, dtype);
  if (!edited.isfinite().all().item<bool>()) throw out_of_range(name, *entry, dtype, "as the run computes with it");
  model_.put_weight(id, std::move(edited));
  return entry->deltas.back();
}

std::vector<RoundingLoss> WeightTransaction::round_as_written() {
  const torch::NoGradGuard no_grad;
  std::vector<RoundingLoss> losses;
  for (Entry& entry : entries_) {
    const Tensor base = entry.base.to(entry.master.device(), entry.master.scalar_type());
    const Tensor rounded =
        read_back_ ? read_back_(entry) : entry.master.to(entry.base.scalar_type()).to(entry.master.scalar_type());
    check_device(rounded, entry.master.device(), weight_name(model_.config(), entry.id) + ": as written");
    const double change = (entry.master - base).norm().item<double>();
    const double lost = (rounded - entry.master).norm().item<double>();
    if (!std::isfinite(change) || !std::isfinite(lost))
      throw out_of_range(weight_name(model_.config(), entry.id), entry, entry.base.scalar_type(),
                         "rounded to the type it is stored in");
    losses.push_back({entry.id, change, base.norm().item<double>(), change > 0 ? lost / change : 0.0});
    model_.put_weight(entry.id, copy_as(rounded, entry.original.scalar_type()));
  }
  return losses;
}

void WeightTransaction::put_exact() {
  const torch::NoGradGuard no_grad;
  for (const Entry& entry : entries_) model_.put_weight(entry.id, copy_as(entry.master, entry.original.scalar_type()));
}

std::string WeightTransaction::changes_key() {
  ContentHash all;
  for (Entry& entry : entries_) {
    for (; entry.n_in_key < entry.deltas.size(); ++entry.n_in_key) {
      ContentHash one;
      one.add(entry.key);
      add_bytes(one, entry.deltas[entry.n_in_key]);
      entry.key = one.hex();
    }
    all.add(static_cast<int64_t>(entry.id.kind)).add(entry.id.layer).add(entry.key);
  }
  return all.hex();
}

}  // namespace lancet
