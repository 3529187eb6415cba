#include "sum_order.h"

#include <ATen/ATen.h>

#include <limits>
#include <string_view>
#include <unordered_set>

namespace lancet::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether torch adds up in any order on a GPU whatever the numbers are: its documentation of
/// use_deterministic_algorithms.
bool has_no_order(std::string_view name, std::span<const c10::IValue> arguments) {
  static const std::unordered_set<std::string_view> kAlways{"cumsum", "cumprod", "logcumsumexp", "histc"};
  if (kAlways.contains(name)) return true;
  if (name == "bincount") return arguments[1].isTensor() && arguments[1].toTensor().defined();  // with weights
  return name == "put" && arguments[3].toBool();                                                // that adds
}

/// Places that an operation puts something at.
struct Places {
  int64_t dim;
  at::Tensor index;  ///< shape of what is put, counted in the target's dimension `dim`
};

/// Returns the places of index_add and index_copy, whose index is one for whole slices.
Places of_slices(std::span<const c10::IValue> arguments, const at::Tensor& put) {
  const int64_t dim = put.dim() == 0 ? 0 : at::maybe_wrap_dim(arguments[1].toInt(), put.dim());
  std::vector<int64_t> shape(static_cast<size_t>(put.dim()), 1);
  if (put.dim() > 0) shape[static_cast<size_t>(dim)] = -1;
  return {dim, arguments[2].toTensor().to(at::kLong).view(shape).expand_as(put)};
}

void refuse(std::string_view name, std::string_view what) {
  TORCH_CHECK(false, "aten::", name, ": ", what, ", in an order that a GPU does not keep: expected slots of their own");
}

/// `target` gets `put` added at `places`.
void check_added(std::string_view name, const at::Tensor& target, const at::Tensor& put, const Places& places) {
  const at::Tensor numbers = put.to(at::kDouble), is_some = numbers.ne(0), none = at::zeros_like(target, at::kDouble);
  const at::Tensor has_before = target.ne(0);
  const auto reduced = [&](double neutral, const char* how) {
    return none.add(neutral).scatter_reduce(places.dim, places.index, at::where(is_some, numbers, neutral), how);
  };
  const at::Tensor count = none.scatter_add(places.dim, places.index, is_some.to(at::kDouble)) + has_before;
  const at::Tensor differs = reduced(kInfinity, "amin").ne(reduced(-kInfinity, "amax")).logical_or(has_before);
  if (count.gt(2).logical_and(differs).any().item<bool>()) refuse(name, "three numbers or more are added in one place");
}

void check_put(std::string_view name, const at::Tensor& target, const Places& places) {
  const at::Tensor ones = at::ones(places.index.sizes(), at::kDouble);
  const at::Tensor count = at::zeros_like(target, at::kDouble).scatter_add(places.dim, places.index, ones);
  if (count.gt(1).any().item<bool>()) refuse(name, "several numbers are put in one place");
}

}  // namespace

void check_sum_order(const std::string& full_name, std::span<const c10::IValue> arguments) {
  std::string_view name(full_name);
  name.remove_prefix(name.find("::") + 2);
  if (name.ends_with('_')) name.remove_suffix(1);
  static const std::unordered_set<std::string_view> kWatched{"cumsum",      "cumprod", "logcumsumexp", "histc",
                                                             "bincount",    "put",     "index_add",    "index_copy",
                                                             "scatter_add", "scatter"};
  if (!kWatched.contains(name) || !arguments[0].isTensor()) return;
  const at::Tensor target = arguments[0].toTensor();
  const bool rounds = at::isFloatingType(target.scalar_type());  // whole numbers add up exactly
  if (has_no_order(name, arguments) && (rounds || name == "bincount")) refuse(name, "numbers are added");
  if (!rounds) return;
  if (name == "index_add" || name == "index_copy") {
    const at::Tensor put = arguments[3].toTensor();
    const Places places = of_slices(arguments, put);
    name == "index_add" ? check_added(name, target, put, places) : check_put(name, target, places);
  } else if (name == "scatter_add" || (name == "scatter" && arguments[3].isTensor())) {
    const at::Tensor index = arguments[2].toTensor();
    at::Tensor put = arguments[3].toTensor();
    for (int64_t d = 0; d < index.dim(); ++d) put = put.narrow(d, 0, index.size(d));
    const Places places{arguments[1].toInt(), index};
    name == "scatter_add" ? check_added(name, target, put, places) : check_put(name, target, places);
  }
}

}  // namespace lancet::testing
