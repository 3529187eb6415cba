// `lancet quantise`: a model in full precision as a quantised checkpoint in which its edits hold. Protocol and schema:
// docs/quantise.md.
// Source: GPTQ (Frantar et al. 2023, arXiv 2210.17323): layer by layer, the later ones on what the quantised earlier
// ones give. Differs from it: H = alpha C + K K^T, with the inputs K of the matrices at the edits' lookup tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/eval/evaluate.h"
#include "lancet/job/job_config.h"

namespace lancet {

/// What is written: GPTQ's format or compressed-tensors' "pack-quantized", whole numbers of 4 or 8 bits around 0, a
/// scale for each row of a group.
enum class QuantisedFormat { kGptq, kCompressedTensors };

/// Columns of a group.
inline constexpr int64_t kQuantisedGroup = 128;

struct QuantiseJob {
  std::filesystem::path model;
  std::filesystem::path edits;  ///< an output of `lancet edit`; empty: the model itself, where it is one
  std::filesystem::path out;
  IfExists if_exists = IfExists::kError;
  QuantisedFormat format = QuantisedFormat::kGptq;
  int64_t bits = 4;
  std::filesystem::path corpus = {};                                   ///< text; empty: the model writes its own
  int64_t tokens = 100'000;                                            ///< tokens of text, at most
  double covariance_weight = *OutputSpec::kCovarianceWeight.fallback;  ///< alpha, above 0
  RunOptions run;
};

/// How far a matrix as it is read from the output is from the one before. Errors are shares.
struct QuantisedMatrix {
  std::string name;                     ///< name of its tensor in the model
  double error = 0;                     ///< sqrt(trace(E H E^T) / trace(W H W^T)), E = result - W
  double nearest_error = 0;             ///< error with each number at the nearest of its group
  std::optional<double> residual = {};  ///< |E K| / |W K|; nullopt: no edit's token comes here
  std::optional<double> nearest_residual = {};
};

struct QuantiseReport {
  std::string content_hash;  ///< hash of the model
  std::string dtype;
  std::string devices;
  std::vector<QuantisedMatrix> matrices;
  std::vector<std::string> in_full_precision;  ///< modules of layers that do not fit the format's groups
  std::vector<EditRequest> requests;
  std::filesystem::path requests_file;         ///< empty: none
  int64_t tokens = 0;                          ///< tokens of text
  int64_t kept_bytes = 0;                      ///< hidden states between layers, on the host
  uint64_t bytes_before = 0, bytes_after = 0;  ///< bytes of all tensors
  /// Measures of the requests; empty without any.
  std::optional<Evaluation> before, after;
  double seconds = 0;  ///< seconds of packing, text included
};

/// Quantises in one process. `after` is measured on what was written, opened again; the folder appears complete or not
/// at all. Throws: ConfigError for an output that is there, a model that is quantised already, a format that does not
/// fit the model or any of its matrices, requests that are missing, a corpus that is too short; CheckpointError,
/// TokenizerError, PlacementError, NumericError.
QuantiseReport run_quantise_job(const QuantiseJob& job);

/// "gptq".
std::string quantised_format_name(QuantisedFormat format);

/// quantise.json.
std::string to_json(const QuantiseReport& report, const QuantiseJob& job);

}  // namespace lancet
