#include "lancet/edit/null_space_store.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "matrix_file.h"

namespace lancet {
namespace {

/// A basis vector a row.
constexpr MatrixKind kNullSpace{"lancet-null-space-1", "basis", "null space of a covariance", MatrixShape::kWide};
constexpr const char* kRank = "rank";
constexpr const char* kTokens = "tokens";
constexpr const char* kBelow = "below";
constexpr const char* kMeanDiagonal = "mean_diagonal";

}  // namespace

std::filesystem::path null_space_file(const std::filesystem::path& cache, const std::string& content_key,
                                      const NullSpaceRule& rule) {
  const std::string name = rule.below ? exact_text(*rule.below) : "share-" + exact_text(rule.share);
  return cache / cat(content_key, ".null-space-", name, ".safetensors");
}

void NullSpaceStore::make(int64_t layer) const {
  const Covariance moments = moments_.load(layer);
  const Tensor covariance_FF = moments.moment_FF.to(placement_.solve_device(layer));
  const double mean_diagonal = covariance_FF.trace().item<double>() / static_cast<double>(covariance_FF.size(0));
  const NullSpace space = make_null_space(covariance_FF, rule_, cat("layer ", layer));
  write_matrix(cache_file(layer), kNullSpace, space.basis_FQ.t(),
               {{kRank, std::to_string(space.rank)},
                {kBelow, exact_text(space.below)},
                {kTokens, std::to_string(moments.tokens)},
                {kMeanDiagonal, exact_text(mean_diagonal)}});
}

NullSpace NullSpaceStore::load(int64_t layer) const {
  const MatrixFile file = map_matrix(cache_file(layer), kNullSpace, size_);
  const auto rank = static_cast<int64_t>(file.number(kRank));
  const int64_t n_vectors = file.matrix.size(0);
  if (rank < 1 || rank >= size_ || n_vectors != std::min(rank, size_ - rank))
    throw CheckpointError(cat(file.path.string(), ": expected the smaller basis of a null space of ", rank, " of ",
                              size_, " dimensions, got ", n_vectors,
                              " vectors: remove the file, it will be made again"));
  return {file.matrix.to(placement_.solve_device(layer)).t(),
          n_vectors == rank ? NullSpace::Basis::kNullSpace : NullSpace::Basis::kComplement, rank,
          rule_.below ? *rule_.below : file.number(kBelow)};
}

MomentFacts NullSpaceStore::facts(int64_t layer) const {
  const MatrixFile file = map_matrix(cache_file(layer), kNullSpace, size_);
  return {static_cast<int64_t>(file.number(kTokens)), file.number(kMeanDiagonal)};
}

}  // namespace lancet
