#include "lancet/statistics/null_space_store.h"

#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/statistics/derived_store.h"
#include "matrix_file.h"

namespace lancet {
namespace {

/// Each row is a basis vector. For layers with experts it is P itself, in blocks.
constexpr MatrixKind kNullSpace{{"lancet-null-space-2"}, "basis", "null space of a covariance", MatrixShape::kWide};
constexpr const char* kRank = "rank";
constexpr const char* kBelow = "below";

}  // namespace

std::filesystem::path null_space_file(const std::filesystem::path& cache, const std::string& content_key,
                                      const NullSpaceRule& rule) {
  const std::string name = rule.below ? exact_text(*rule.below) : "share-" + exact_text(rule.share);
  return cache / cat(content_key, ".null-space-", name, ".safetensors");
}

void NullSpaceStore::make(int64_t layer) const {
  const Covariance moments = moments_.load(layer);
  const Tensor covariance_FF = upload(moments.moment_FF, device_of(layer));
  const NullSpace space = make_null_space(covariance_FF, rule_, cat("layer ", layer));
  Metadata facts = to_metadata({moments.tokens, mean_diagonal(covariance_FF)});
  facts[kRank] = std::to_string(space.rank);
  facts[kBelow] = exact_text(space.below);
  write_matrix(cache_file(layer), kNullSpace, space.basis_FQ.mT(), facts);
}

const MatrixKind& NullSpaceStore::kind() const { return kNullSpace; }

NullSpace NullSpaceStore::load(int64_t layer) const {
  const MatrixFile file = open(layer);
  const auto rank = static_cast<int64_t>(file.number(kRank));
  const double below = below_in(file);
  const Tensor stored = load_matrix(layer);
  if (stored.dim() == 3) return {stored, NullSpace::Basis::kProjection, rank, below};
  const auto basis = stored.size(0) == rank ? NullSpace::Basis::kNullSpace : NullSpace::Basis::kComplement;
  return {stored.t(), basis, rank, below};
}

double NullSpaceStore::below(int64_t layer) const { return rule_.below ? *rule_.below : below_in(open(layer)); }

double NullSpaceStore::below_in(const MatrixFile& file) const {
  return rule_.below ? *rule_.below : file.number(kBelow);
}

}  // namespace lancet
