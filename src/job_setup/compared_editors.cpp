#include "compared_editors.h"

#include <algorithm>
#include <vector>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/editors/registry.h"
#include "lancet/job_setup/job_defaults.h"

namespace lancet {
namespace {

constexpr const char* kMethodKey = "method";
constexpr const char* kPresetKey = "preset";

bool is_method(const std::string& name) {
  return std::any_of(editor_table().begin(), editor_table().end(),
                     [&](const EditorRow& row) { return row.name == name; });
}

bool has_map(const ConfigTree& job, const char* key) {
  const ConfigTree* section = job.find(key);
  return section != nullptr && section->kind == ConfigTree::Kind::kMap;
}

/// Returns the method of the job's editor; empty where it has none, or names no method.
std::string edited_method(const ConfigTree& job, const JobSource& source) {
  return has_map(job, "editor") ? method_of(*job.find("editor"), source) : "";
}

/// The editor's method first.
std::vector<std::string> usual_methods(const std::string& own) {
  std::vector<std::string> methods;
  if (!own.empty()) methods.push_back(own);
  for (const std::string name : kComparedMethods)
    if (name != own) methods.push_back(name);
  return methods;
}

bool is_published(const std::string& method, const ConfigTree& job, const JobSource& source) {
  return find_automatic_preset(method, job, source) != nullptr;
}

ConfigTree section_of(const std::string& method, const ConfigTree& job, const JobSource& source) {
  ConfigTree section = ConfigTree::map();
  section.set(kMethodKey, ConfigTree::text(method));
  if (method != edited_method(job, source) && is_published(method, job, source))
    section.set(kPresetKey, ConfigTree::text("auto"));
  return section;
}

/// What `section` takes over from `editor`, which both are maps.
ConfigTree inherited(ConfigTree section, const ConfigTree& editor, const ConfigTree& job, const JobSource& source) {
  const ConfigTree* method = section.find(kMethodKey);
  if (method == nullptr || method->kind != ConfigTree::Kind::kScalar || section.find(kPresetKey) != nullptr)
    return section;
  const bool is_same = method->scalar == edited_method(job, source);
  if (is_same && section.entries.size() == 1) {
    section = editor;
    section.set(kMethodKey, *method);
    return section;
  }
  const ConfigTree* preset = editor.find(kPresetKey);
  if (preset == nullptr || preset->kind != ConfigTree::Kind::kScalar) return section;
  if (is_same || (preset->scalar == "auto" && is_published(method->scalar, job, source)))
    section.set(kPresetKey, *preset);
  return section;
}

}  // namespace

void add_compared(ConfigTree& job, std::span<const std::string> names, const JobSource& source) {
  if (job.kind != ConfigTree::Kind::kMap) return;
  const ConfigTree* given = job.find("compare");
  if (given != nullptr && given->kind != ConfigTree::Kind::kMap) return;  // reading the job reports it
  std::vector<std::string> wanted(names.begin(), names.end());
  if (given == nullptr && wanted.empty()) {
    wanted = usual_methods(edited_method(job, source));
    log_line(cat("compare  ", join(wanted), ": the job has no section compare:; --methods names others"));
  }
  ConfigTree sections = given == nullptr ? ConfigTree::map() : *given;
  for (const std::string& name : wanted)
    if (is_method(name) && sections.find(name) == nullptr) sections.set(name, section_of(name, job, source));
  if (!sections.entries.empty()) job.set("compare", std::move(sections));
}

void inherit_editor(ConfigTree& job, const JobSource& source) {
  if (!has_map(job, "compare") || !has_map(job, "editor")) return;
  ConfigTree sections = *job.find("compare");
  const ConfigTree editor = *job.find("editor");
  for (auto& [label, section] : sections.entries)
    if (section.kind == ConfigTree::Kind::kMap) section = inherited(std::move(section), editor, job, source);
  job.set("compare", std::move(sections));
}

}  // namespace lancet
