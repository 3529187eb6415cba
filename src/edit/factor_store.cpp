#include "lancet/edit/factor_store.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/edit/solvers.h"
#include "matrix_file.h"

namespace lancet {
namespace {

/// L^T by rows, which is L by columns.
constexpr MatrixKind kFactor{"lancet-factor-1", "upper", "factor of a covariance"};
constexpr const char* kTokens = "tokens";
constexpr const char* kMeanDiagonal = "mean_diagonal";

}  // namespace

std::filesystem::path factor_file(const std::filesystem::path& cache, const std::string& content_key, double ridge) {
  return cache / cat(content_key, ".factor-", exact_text(ridge), ".safetensors");
}

void FactorStore::make(int64_t layer) const {
  MomentFacts facts;
  const auto covariance = [&] {
    Covariance moments = moments_.load(layer);
    const double size = static_cast<double>(moments.moment_FF.size(0));
    facts = {moments.tokens, moments.moment_FF.trace().item<double>() / size};
    return moments.moment_FF.to(placement_.solve_device(layer));
  };
  const Tensor lower_FF = factor_covariance(covariance, ridge_, cat("layer ", layer));
  write_matrix(cache_file(layer), kFactor, lower_FF.t(),
               {{kTokens, std::to_string(facts.tokens)}, {kMeanDiagonal, exact_text(facts.mean_diagonal)}});
}

Tensor FactorStore::load(int64_t layer) const {
  const MatrixFile file = map_matrix(cache_file(layer), kFactor, size_);
  const Tensor diagonal_F = file.matrix.diagonal();
  if (!(diagonal_F > 0).logical_and(diagonal_F.isfinite()).all().item<bool>())
    throw CheckpointError(cat(file.path.string(), ": expected positive numbers on the factor's diagonal, got others",
                              ": remove the file, it will be made again"));
  return file.matrix.to(placement_.solve_device(layer)).t();
}

MomentFacts FactorStore::facts(int64_t layer) const {
  const MatrixFile file = map_matrix(cache_file(layer), kFactor, size_);
  return {static_cast<int64_t>(file.number(kTokens)), file.number(kMeanDiagonal)};
}

}  // namespace lancet
