// `lancet diff`: in what two checkpoints of one architecture differ, weight by weight, and that as an adapter. Protocol
// and schema: docs/diff.md.
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
  RunOptions run = {};         ///< devices, of which the first one works, and threads
};

/// A weight whose numbers differ; of experts, one of them.
struct DifferentWeight {
  std::string name = {};  ///< name in the first checkpoint
  WeightId id = {};
  int64_t expert = 0;
  std::vector<int64_t> shape = {};                ///< [out, in] for matrices
  std::string type_before = {}, type_after = {};  ///< "BF16", or how it is quantised: "gptq"
  ChangeSize size = {};
  std::optional<ChangeSpectrum> spectrum = {};  ///< change of a matrix; factors only where an adapter is written of it
  int64_t written = 0;                          ///< directions that the adapter has
  double lost_norm = 0;                         ///< norm of what it has not
  std::string left_out = {};                    ///< why the adapter has nothing of it
};

struct OtherShape {
  std::string name = {};
  std::vector<int64_t> before = {}, after = {};
};

/// A key of config.json; JSON texts, empty where it is absent.
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
  size_t equal_bytes = 0;    ///< weights, an expert's matrices each for itself
  size_t equal_numbers = 0;  ///< weights equal in another type or packing, or in a tensor with others
  std::vector<DifferentWeight> different = {};  ///< weights, in model order
  std::vector<OtherShape> other_shapes = {};
  std::vector<std::string> only_before = {}, only_after = {};  ///< weights, and tensors that are part of none
  std::vector<DifferentKey> config = {};
  std::vector<DifferentFile> files = {};  ///< files of the tokenizer, and what else goes with the weights
  std::optional<WrittenAdapter> adapter = {};
  std::string device = {};
  double seconds = 0;
};

/// Compares in one process, one pair of weights at a time, quantised ones as they unpack. The output folder appears
/// complete or not at all.
/// Throws: ConfigError for an output that is there, families that differ, and an adapter without content;
/// CheckpointError, PlacementError, NumericError.
DiffReport run_diff_job(const DiffJob& job);

/// diff.json.
std::string to_json(const DiffReport& report, const DiffJob& job);

}  // namespace lancet
