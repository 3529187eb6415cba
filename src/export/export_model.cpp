#include <algorithm>
#include <nlohmann/json.hpp>

#include "export_folder.h"
#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/checkpoint/gguf_export.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/export/export_job.h"
#include "lancet/io/files.h"
#include "lancet/io/json_file.h"
#include "lancet/io/model_file_names.h"
#include "lancet/io/model_file_output.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

void copy_adapter(const fs::path& from, const fs::path& to) {
  nlohmann::ordered_json settings;
  try {
    settings = parse_ordered_json(read_text_file(from / kAdapterConfig, "adapter"));
  } catch (const JsonProblem& problem) {
    throw CheckpointError(
        cat((from / kAdapterConfig).string(), ": ", problem.what(), "; take the adapter from where it was made"));
  }
  if (settings.is_object() && settings.contains(kAdapterBase)) settings[kAdapterBase] = nullptr;
  write_text_file(to / kAdapterConfig, settings.dump(2) + "\n");
  const SafetensorsReader file = SafetensorsReader::open(from / kAdapterWeights);
  std::error_code error;
  if (!fs::copy_file(file.path(), to / kAdapterWeights, error) || error)
    throw CheckpointError(cat((to / kAdapterWeights).string(), ": cannot write: ", error.message(),
                              "; free some space there or choose another place"));
}

std::vector<std::string> first_level(const fs::path& folder) {
  std::vector<std::string> names = folder_names(folder);
  std::ranges::sort(names);
  return names;
}

}  // namespace

ExportModelReport export_model(const ExportModelJob& job) {
  if (output_place(job.out).model_file)
    throw ConfigError(cat("--out ", job.out.string(), ": expected the name of a folder: the copy of a GGUF model is ",
                          kGgufFile, " in it"));
  check_export_folder(job.out, job.if_exists, job.model);
  std::optional<Checkpoint> checkpoint;
  if (!is_adapter(job.model)) checkpoint.emplace(Checkpoint::open(job.model));
  const fs::path source = checkpoint && checkpoint->gguf() == nullptr ? checkpoint->folder() : job.model;
  OutputLock lock(job.out, kExportOutput);
  check_export_folder(job.out, job.if_exists, job.model);  // again: another run may have ended before the lock
  OutputFolder folder(job.out, job.if_exists, kExportOutput);
  if (checkpoint && checkpoint->gguf() != nullptr)
    export_gguf(*checkpoint, {}, {}, folder.staging() / kGgufFile);
  else if (checkpoint)
    export_checkpoint(*checkpoint, {}, folder.staging());
  else
    copy_adapter(job.model, folder.staging());
  ExportModelReport report{.files = first_level(folder.staging())};
  const std::vector<std::string> all = fs::is_directory(source) ? first_level(source) : std::vector<std::string>();
  std::ranges::set_difference(all, report.files, std::back_inserter(report.left_out));
  folder.commit();
  return report;
}

}  // namespace lancet
