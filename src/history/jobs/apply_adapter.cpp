#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/deltas/adapter.h"
#include "lancet/export/output_form.h"
#include "lancet/history/apply_adapter.h"
#include "lancet/history/apply_job.h"
#include "lancet/io/files.h"
#include "lancet/io/json_file.h"
#include "lancet/io/output_folder.h"
#include "lancet/models/stored_part.h"
#include "lancet/outcome/report_json.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kApplyRecord = "apply.json";
constexpr OutputKind kApplyOutput{"apply"};

fs::path base_of_adapter(const fs::path& adapter) {
  const nlohmann::json settings = read_json_file(adapter / kAdapterConfig, "adapter");
  const auto found = settings.is_object() ? settings.find(kAdapterBase) : settings.end();
  if (found == settings.end() || !found->is_string() || !fs::exists(found->get<std::string>()))
    throw ConfigError(cat((adapter / kAdapterConfig).string(), ": ", kAdapterBase,
                          " names no folder here: say by --to which model it belongs to"));
  return found->get<std::string>();
}

/// Returns the stored weight with the change added.
WeightTransaction::Entry changed(const ModelFiles& files, const WeightSpec& spec, const WeightChanges& changes,
                                 AdaptedWeight& told) {
  const at::ScalarType type = to_scalar_type(
      spec.packed.empty() ? files.checkpoint.info(spec.stored.tensors.front()).dtype : files.config.dtype);
  const Tensor base = read_stored(files.checkpoint, spec, type).contiguous().clone();
  Tensor change = torch::zeros(base.sizes(), torch::kDouble);
  for (const WeightDelta& delta : changes.deltas) change += to_dense(moved_to(delta, base.device())).to(torch::kDouble);
  const Tensor exact = base.to(torch::kDouble) + change, stored = exact.to(type);
  if (!stored.isfinite().all().item<bool>())
    throw NumericError(cat(spec.name, ": with the adapter's change added it leaves the range of ",
                           dtype_name(files.config.dtype), ": the adapter is another model's, or damaged"));
  const double norm = change.norm().item<double>(), weight_norm = base.to(torch::kDouble).norm().item<double>();
  told = {.name = spec.name,
          .norm = norm,
          .growth = weight_norm > 0 ? norm / weight_norm : 0,
          .rank = directions_of(changes.deltas),
          .rounded = norm > 0 ? (stored.to(torch::kDouble) - exact).norm().item<double>() / norm : 0};
  return {.id = spec.id, .original = {}, .base = base, .master = stored, .deltas = {}};
}

}  // namespace

std::string to_json(const AppliedAdapter& applied, const ApplyJob& job) {
  nlohmann::ordered_json weights = nlohmann::ordered_json::array();
  for (const AdaptedWeight& weight : applied.weights)
    weights.push_back({{"weight", weight.name},
                       {"norm", weight.norm},
                       {"growth", weight.growth},
                       {"rank", weight.rank},
                       {"rounding_loss", weight.rounded}});
  return dump_report({{"format", "lancet-apply-1"},
                      {"lancet", kVersion},
                      {"adapter", job.edits.string()},
                      {"model", applied.model.string()},
                      {"output", applied.format},
                      {"weights", std::move(weights)}});
}

bool is_foreign_adapter(const fs::path& folder) { return is_adapter(folder) && !find_journal(folder); }

AppliedAdapter apply_adapter(const ApplyJob& job) {
  if (!job.overrides.empty() || job.other_base != OtherBase::kRefuse)
    throw ConfigError(cat(job.edits.string(), ": an adapter alone has no job and no requests: expected no --set, ",
                          "--adapter, --rebase or --add-anyway with it"));
  const torch::NoGradGuard no_grad;
  check_new_output(job.out, job.if_exists, kApplyOutput);
  AppliedAdapter applied{.model = job.model.empty() ? base_of_adapter(job.edits) : job.model};
  check_apart(job.out, applied.model);
  check_apart(job.out, job.edits);
  const ModelFiles files = open_model(applied.model, {});
  const std::vector<WeightChanges> changes = read_adapter(job.edits, files.config);
  if (changes.empty()) throw ConfigError(cat(job.edits.string(), ": the adapter changes nothing"));
  std::vector<WeightTransaction::Entry> entries;
  bool has_packed = false;
  Progress progress("weights", static_cast<int64_t>(changes.size()), "weights");
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint))
    for (const WeightChanges& weight : changes) {
      if (weight.id != spec.id) continue;
      has_packed = has_packed || !spec.packed.empty();
      entries.push_back(changed(files, spec, weight, applied.weights.emplace_back()));
      progress.advance();
    }
  applied.format = files.checkpoint.gguf() != nullptr ? "gguf" : has_packed ? "mixed" : "checkpoint";
  OutputLock lock(job.out, kApplyOutput);
  // again: another run may have ended before the lock was taken
  check_new_output(job.out, job.if_exists, kApplyOutput);
  OutputFolder folder(job.out, job.if_exists, kApplyOutput);
  (has_packed ? make_mixed_form(files) : make_checkpoint_form(files))->write(entries, folder.staging());
  write_text_file(folder.staging() / kApplyRecord, to_json(applied, job));
  folder.commit();
  return applied;
}

}  // namespace lancet
