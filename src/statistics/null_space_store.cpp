#include "lancet/statistics/null_space_store.h"

#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/models/tensor_reader.h"
#include "matrix_file.h"

namespace lancet {
namespace {

/// A basis vector a row.
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
  const Tensor covariance_FF = upload(moments.moment_FF, placement_.solve_device(layer));
  const double mean_diagonal = covariance_FF.trace().item<double>() / static_cast<double>(covariance_FF.size(0));
  const NullSpace space = make_null_space(covariance_FF, rule_, cat("layer ", layer));
  Metadata facts = to_metadata({moments.tokens, mean_diagonal});
  facts[kRank] = std::to_string(space.rank);
  facts[kBelow] = exact_text(space.below);
  write_matrix(cache_file(layer), kNullSpace, space.basis_FQ.t(), facts);
}

const MatrixKind& NullSpaceStore::kind() const { return kNullSpace; }

NullSpace NullSpaceStore::load(int64_t layer) const {
  const MatrixFile file = MatrixFile::open(cache_file(layer), kNullSpace, size_);
  const auto rank = static_cast<int64_t>(file.number(kRank));
  Tensor vectors_QF = file.load();
  const auto basis = vectors_QF.size(0) == rank ? NullSpace::Basis::kNullSpace : NullSpace::Basis::kComplement;
  return {upload(vectors_QF, placement_.solve_device(layer)).t(), basis, rank,
          rule_.below ? *rule_.below : file.number(kBelow)};
}

}  // namespace lancet
