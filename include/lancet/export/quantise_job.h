// `lancet quantise`: writes a model in full precision as a quantised checkpoint that preserves its edits. Protocol and
// schema: docs/quantise.md.
// Source: GPTQ (Frantar et al. 2023, arXiv 2210.17323): quantises layer by layer; later layers use the outputs of the
// quantised earlier ones. Differs from it: H = alpha C + K K^T, with the inputs K of the matrices at the edits' lookup
// tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/eval/evaluate.h"
#include "lancet/job/job_config.h"

namespace lancet {

/// The format: GPTQ's, or "pack-quantized" of compressed-tensors. Both store integers of 4 or 8 bits around 0, with a
/// scale for each row of a group.
enum class QuantisedFormat { kGptq, kCompressedTensors };

/// The number of columns of a group.
inline constexpr int64_t kQuantisedGroup = 128;

struct QuantiseJob {
  std::filesystem::path model;
  std::filesystem::path edits;  ///< an output of `lancet edit`; empty: `model` itself, if it is one
  std::filesystem::path out;
  IfExists if_exists = IfExists::kError;
  QuantisedFormat format = QuantisedFormat::kGptq;
  int64_t bits = 4;
  std::filesystem::path corpus = {};                                   ///< text; empty: the model writes its own
  int64_t tokens = 100'000;                                            ///< most tokens of text
  double covariance_weight = *OutputSpec::kCovarianceWeight.fallback;  ///< alpha, above 0
  RunOptions run;
};

/// How far a matrix in the output is from the original one. Errors are shares.
struct QuantisedMatrix {
  std::string name;                     ///< name of its tensor in the model
  double error = 0;                     ///< sqrt(trace(E H E^T) / trace(W H W^T)), E = result - W
  double nearest_error = 0;             ///< the error if each number is rounded to the nearest value of its group
  std::optional<double> residual = {};  ///< |E K| / |W K|; nullopt: no token of an edit reaches this matrix
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
  /// Measurements of the requests; empty if there are none.
  std::optional<Evaluation> before, after;
  double seconds = 0;  ///< duration of packing, including the text
};

/// Quantises in one process. `after` is measured on the written checkpoint, which is opened again. The folder appears
/// complete or not at all. Throws: ConfigError if the output exists, for a model that is already quantised, for a
/// format that does not fit the model or fits none of its matrices, for missing requests, and for a corpus that is too
/// short; CheckpointError, TokenizerError, PlacementError, NumericError.
QuantiseReport run_quantise_job(const QuantiseJob& job);

/// Returns "gptq" or the other format's name.
std::string quantised_format_name(QuantisedFormat format);

/// Returns the text of quantise.json.
std::string to_json(const QuantiseReport& report, const QuantiseJob& job);

}  // namespace lancet
