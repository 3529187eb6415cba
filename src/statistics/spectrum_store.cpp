#include "lancet/statistics/spectrum_store.h"

#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/statistics/derived_store.h"
#include "matrix_file.h"

namespace lancet {
namespace {

/// Each row is an eigenvector, in ascending order of eigenvalues; the last row has the eigenvalues.
constexpr MatrixKind kSpectrum{{"lancet-spectrum-1"}, "spectrum", "spectrum of second moments", MatrixShape::kWide};

}  // namespace

std::filesystem::path spectrum_file(const std::filesystem::path& cache, const std::string& content_key) {
  return cache / (content_key + ".spectrum.safetensors");
}

void SpectrumStore::make(int64_t layer) const {
  const Covariance moments = moments_.load(layer);
  const Tensor moment_NN = upload(moments.moment_FF, device_of(layer));
  const MomentSpectrum spectrum = make_spectrum(moment_NN, moments.tokens, cat("layer ", layer));
  write_matrix(cache_file(layer), kSpectrum, torch::cat({spectrum.vectors_NN.t(), spectrum.values_N.unsqueeze(0)}),
               to_metadata({moments.tokens, mean_diagonal(moment_NN)}));
}

const MatrixKind& SpectrumStore::kind() const { return kSpectrum; }

MomentSpectrum SpectrumStore::load(int64_t layer) const {
  const Tensor stored = load_matrix(layer);
  const int64_t size = stored.size(1);
  return {stored[size], stored.narrow(0, 0, size).t(), facts(layer).tokens};
}

}  // namespace lancet
