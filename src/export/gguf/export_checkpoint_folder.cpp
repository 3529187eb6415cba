// The numbers of a GGUF file in full precision, as transformers reads them.
#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "export_folder.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/export/checkpoint_job.h"
#include "lancet/gguf/gguf_model.h"
#include "lancet/gguf/tiled_heads.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "lancet/io/model_file_names.h"
#include "lancet/models/tensor_io.h"
#include "lancet/outcome/report_json.h"
#include "lancet/runtime/devices.h"
#include "own_tensors.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// Names of types, as config.json has them.
std::string config_dtype(DType dtype) {
  return dtype == DType::kBF16 ? "bfloat16" : dtype == DType::kF16 ? "float16" : "float32";
}

uint64_t bytes_of_group(const OwnGroup& group, DType dtype) {
  uint64_t bytes = 0;
  for (const OwnTensor& tensor : group.tensors) {
    uint64_t count = static_cast<uint64_t>(bytes_per_element(dtype));
    for (const int64_t size : tensor.shape) count *= static_cast<uint64_t>(size);
    bytes += count;
  }
  return bytes;
}

class CheckpointExport {
 public:
  explicit CheckpointExport(const ExportCheckpointJob& job)
      : job_(job),
        files_(open_model(job.model, {})),
        dtype_(job.dtype.value_or(files_.config.dtype)),
        own_(files_, TensorsForm::kClass) {}

  ExportCheckpointReport write(const fs::path& folder) const {
    write_side_files(folder);
    ExportCheckpointReport report{.dtype = dtype_};
    const std::vector<std::span<const OwnGroup>> shards = divided();
    nlohmann::ordered_json map = nlohmann::ordered_json::object();
    Progress progress("export", std::ssize(own_.groups()), "tensors");
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name = name_of_shard(i, shards.size());
      write_shard(folder / name, shards[i], progress);
      for (const OwnGroup& group : shards[i]) {
        for (const OwnTensor& tensor : group.tensors) map[tensor.name] = name;
        report.weight_bytes += static_cast<int64_t>(bytes_of_group(group, dtype_));
      }
    }
    if (shards.size() > 1) {
      const nlohmann::ordered_json index{{"metadata", {{"total_size", report.weight_bytes}}}, {"weight_map", map}};
      write_text_file(folder / kIndexFile, index.dump(2) + "\n");
    }
    files_.checkpoint.check_unchanged();
    report.files = folder_names(folder);
    std::ranges::sort(report.files);
    return report;
  }

 private:
  void write_side_files(const fs::path& folder) const {
    const GgufFile& file = files_.checkpoint.gguf()->file;
    for (const std::string& name : gguf_side_names(file)) {
      std::string text = *gguf_side_text(file, name);
      if (name == "config.json") {
        nlohmann::ordered_json config = parse_ordered_json(text);
        config.erase("quantization_config");
        config.erase(kTiledValueHeads);  // the folder has its class's order
        config["dtype"] = config_dtype(dtype_);
        text = config.dump(2) + "\n";
      }
      write_text_file(folder / name, text);
    }
  }

  /// Groups that share a file of weights.
  std::vector<std::span<const OwnGroup>> divided() const {
    const std::span<const OwnGroup> groups = own_.groups();
    std::vector<std::span<const OwnGroup>> shards;
    uint64_t bytes = 0;
    size_t begin = 0;
    for (size_t i = 0; i < groups.size(); ++i) {
      const uint64_t own = bytes_of_group(groups[i], dtype_);
      if (i > begin && bytes + own > job_.shard_bytes) {
        shards.push_back(groups.subspan(begin, i - begin));
        begin = i;
        bytes = 0;
      }
      bytes += own;
    }
    shards.push_back(groups.subspan(begin));
    return shards;
  }

  static std::string name_of_shard(size_t shard, size_t shards) {
    if (shards == 1) return kWeightsFile;
    const auto padded = [](size_t number) {
      const std::string digits = std::to_string(number);
      return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
    };
    return cat("model-", padded(shard + 1), "-of-", padded(shards), ".safetensors");
  }

  void write_shard(const fs::path& path, std::span<const OwnGroup> groups, Progress& progress) const {
    std::vector<Tensor> kept;
    std::vector<TensorSource> sources;
    for (const OwnGroup& group : groups) {
      const std::vector<Tensor> tensors = own_.read(group, to_scalar_type(dtype_));
      for (size_t i = 0; i < tensors.size(); ++i) {
        kept.push_back(tensors[i]);
        if (!kept.back().isfinite().all().item<bool>())
          throw NumericError(cat(group.tensors[i].name, ": expected numbers that ", config_dtype(dtype_),
                                 " can hold, got larger ones: write another type"));
        sources.push_back(to_source(group.tensors[i].name, kept.back()));
      }
      progress.advance(1);
    }
    write_safetensors(path, sources, {{"format", "pt"}});
  }

  const ExportCheckpointJob& job_;
  ModelFiles files_;
  DType dtype_;
  OwnTensors own_;
};

}  // namespace

ExportCheckpointReport export_checkpoint_folder(const ExportCheckpointJob& job) {
  check_export_folder(job.out, job.if_exists, job.model);
  if (has_entry(job.model) && !find_gguf(job.model))
    throw ConfigError(cat(job.model.string(), ": expected a GGUF file, got another model: it is a checkpoint already"));
  OutputLock lock(job.out, kExportOutput);
  check_export_folder(job.out, job.if_exists, job.model);  // again: another run may have ended before the lock
  OutputFolder folder(job.out, job.if_exists, kExportOutput);
  const ExportCheckpointReport report = CheckpointExport(job).write(folder.staging());
  folder.commit();
  return report;
}

std::string to_json(const ExportCheckpointReport& report, const ExportCheckpointJob& job) {
  return dump_report({{"format", "lancet-export-1"},
                      {"lancet", kVersion},
                      {"model", job.model.string()},
                      {"files", report.files},
                      {"dtype", dtype_name(report.dtype)},
                      {"weight_bytes", report.weight_bytes}});
}

}  // namespace lancet
