#include "export_folder.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/gguf_adapter.h"
#include "lancet/edit_history/edit_history.h"
#include "lancet/export/export_job.h"
#include "lancet/gguf/gguf_model.h"
#include "lancet/io/files.h"
#include "lancet/models/model_files.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGgufAdapter = "adapter.gguf";

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Whether the path is a model that says its shapes: a folder with config.json, or a GGUF file.
bool describes_model(const fs::path& model) { return is_there(model / "config.json") || find_gguf(model); }

/// A model that says its shapes. `base`: where the unedited model lay; empty: unknown.
fs::path described_by(const ExportAdapterJob& job, const std::string& base) {
  if (!job.model.empty()) return job.model;
  if (describes_model(job.edited)) return job.edited;
  if (!base.empty() && describes_model(base)) return base;
  throw ConfigError(cat(job.edited.string(), ": expected the model that was edited beside its edits or in ",
                        base.empty() ? "a place that its journal says" : base,
                        ", got none; say where it lies by --model"));
}

}  // namespace

std::string adapter_format_name(AdapterFormat format) {
  return std::string(AdapterSpec::kFormatNames[static_cast<size_t>(format)]);
}

ExportAdapterJob parse_adapter_options(ConfigSection section) {
  ExportAdapterJob job;
  job.format = read<AdapterFormat>(section, AdapterSpec::kFormat);
  const DType types[] = {factor_type_of(job.format), DType::kF32, DType::kF16, DType::kBF16};
  static_assert(std::size(types) == std::size(AdapterSpec::kDTypeNames));
  job.dtype = types[read_index(section, AdapterSpec::kDType)];
  job.largest_rank = read(section, AdapterSpec::kRank);
  section.finish();
  return job;
}

AdapterReport export_adapter(const ExportAdapterJob& job, const ModelConfig& config,
                             const std::vector<WeightChanges>& changes) {
  check_export_folder(job.out, job.if_exists, job.edited);
  OutputLock lock(job.out, kExportOutput);
  check_export_folder(job.out, job.if_exists, job.edited);  // again: another run may have ended before the lock
  OutputFolder folder(job.out, job.if_exists, kExportOutput);
  const bool tells = job.provenance == Provenance::kKept;
  const AdapterOptions options{.base_model = tells ? job.model.string() : "",
                               .dtype = job.dtype,
                               .largest_rank = job.largest_rank,
                               .excess = job.excess};
  const AdapterReport report = job.format == AdapterFormat::kGguf
                                   ? write_gguf_adapter(folder.staging() / kGgufAdapter, config, changes, options)
                                   : write_adapter(folder.staging(), config, changes, options);
  if (tells) write_text_file(folder.staging() / kExportRecord, to_json(report, job));
  folder.commit();
  return report;
}

AdapterReport export_adapter(const ExportAdapterJob& job) {
  check_export_folder(job.out, job.if_exists, job.edited);
  const std::optional<fs::path> edits = find_journal(job.edited);
  if (!edits)
    throw ConfigError(
        cat(job.edited.string(), ": expected an output of lancet edit with its folder ", kEditsFolder,
            "/, got a folder without one; lancet diff finds the change between two models as an adapter"));
  Journal journal = Journal::read(*edits);
  const std::string base = journal.base().folder;
  const ModelConfig config = describe_model(described_by(job, base), {}).config;
  const std::vector<WeightChanges> changes = EditHistory::load(*edits, std::move(journal), config).all_changes();
  if (changes.empty())
    throw ConfigError(cat(job.edited.string(), ": no edit stands in it: there is nothing to export"));
  ExportAdapterJob told = job;
  if (job.model.empty()) told.model = base;
  return export_adapter(told, config, changes);
}

}  // namespace lancet
