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
    facts = {moments.tokens, mean_diagonal(moments.moment_FF)};
    return upload(moments.moment_FF, device_of(layer));
  };
  const Tensor lower_FF = factor_covariance(covariance, ridge_, cat("layer ", layer));
  write_matrix(cache_file(layer), kFactor, lower_FF, to_metadata(facts));
}

const MatrixKind& FactorStore::kind() const { return kFactor; }

Tensor FactorStore::load(int64_t layer) const { return load_matrix(layer); }

}  // namespace lancet
