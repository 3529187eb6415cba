// `lancet diff`: compares two checkpoints of one architecture, weight by weight, and can write the difference as an
// adapter. Protocol and schema: docs/diff.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/deltas/weight_diff.h"
#include "lancet/job/job_config.h"

namespace lancet {

struct DiffJob {
  std::filesystem::path before;  ///< model folders
  std::filesystem::path after;
  std::filesystem::path out = {};  ///< folder for the adapter; empty: none is written
  IfExists if_exists = IfExists::kError;
  int64_t largest_rank = 512;  ///< rank of the adapter, 1 to 512
  RunOptions run = {};         ///< devices, of which only the first is used, and threads
};

/// A weight whose numbers differ. Experts are listed one by one.
struct DifferentWeight {
  std::string name = {};  ///< name in the first checkpoint
  WeightId id = {};
  int64_t expert = 0;
  std::vector<int64_t> shape = {};                ///< [out, in] for matrices
  std::string type_before = {}, type_after = {};  ///< "BF16", or how it is quantised: "gptq"
  ChangeSize size = {};
  /// Spectrum of a matrix's change; it has factors only if an adapter is written from it.
  std::optional<ChangeSpectrum> spectrum = {};
  int64_t written = 0;        ///< number of directions in the adapter
  double lost_norm = 0;       ///< norm of the part that the adapter lacks
  std::string left_out = {};  ///< why the adapter has nothing of this weight
};

struct OtherShape {
  std::string name = {};
  std::vector<int64_t> before = {}, after = {};
};

/// A key of config.json whose values differ. The values are JSON texts, empty if the key is absent.
struct DifferentKey {
  std::string key = {};
  std::string before = {}, after = {};
};

enum class FileDifference { kOther, kOnlyBefore, kOnlyAfter };
std::string file_difference_name(FileDifference difference);  ///< "other", "only_before", "only_after"

struct DifferentFile {
  std::string name = {};
  FileDifference difference = FileDifference::kOther;
};

struct WrittenAdapter {
  int64_t rank = 0;  ///< rank of every pair
  size_t modules = 0;
  int64_t file_bytes = 0;
};

struct DiffReport {
  size_t equal_bytes = 0;  ///< weights whose bytes are equal; each matrix of an expert counts as one
  /// Weights with equal numbers but another type or packing, or stored in one tensor with other weights.
  size_t equal_numbers = 0;
  std::vector<DifferentWeight> different = {};  ///< weights, in model order
  std::vector<OtherShape> other_shapes = {};
  std::vector<std::string> only_before = {}, only_after = {};  ///< weights, and tensors that are not part of a weight
  std::vector<DifferentKey> config = {};
  std::vector<DifferentFile> files = {};  ///< files of the tokenizer, and other files beside the weights
  std::optional<WrittenAdapter> adapter = {};
  std::string device = {};
  double seconds = 0;
};

/// Compares the checkpoints in one process, one pair of weights at a time. Quantised weights are unpacked first. The
/// output folder appears complete or not at all. Throws: ConfigError if the output exists, if the families differ, and
/// for an adapter without content; CheckpointError, PlacementError, NumericError.
DiffReport run_diff_job(const DiffJob& job);

/// Returns the text of diff.json.
std::string to_json(const DiffReport& report, const DiffJob& job);

}  // namespace lancet
