#include "lancet/statistics/factor_store.h"

#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/statistics/covariance_factor.h"
#include "matrix_file.h"

namespace lancet {
namespace {

constexpr MatrixKind kFactor{{"lancet-factor-2"}, "lower_columns", "factor of a covariance", MatrixShape::kLower};

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
    return upload(moments.moment_FF, placement_.solve_device(layer));
  };
  const Tensor lower_FF = factor_covariance(covariance, ridge_, cat("layer ", layer));
  write_matrix(cache_file(layer), kFactor, lower_FF, to_metadata(facts));
}

const MatrixKind& FactorStore::kind() const { return kFactor; }

Tensor FactorStore::load(int64_t layer) const {
  return upload(MatrixFile::open(cache_file(layer), kFactor, size_).load(), placement_.solve_device(layer));
}

}  // namespace lancet
