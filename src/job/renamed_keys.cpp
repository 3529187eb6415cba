#include "lancet/job/renamed_keys.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

struct Renamed {
  const char* section;
  const char* old_name;
  const char* present_name;
};

/// A row goes when the next version is out.
constexpr Renamed kRenamed[] = {{"run", "frozen", "quantise_base"}};

}  // namespace

PresentNames with_present_names(ConfigTree job, const std::string& source) {
  PresentNames names{std::move(job), {}};
  if (names.tree.kind != ConfigTree::Kind::kMap) return names;
  for (const Renamed& key : kRenamed) {
    const ConfigTree* found = names.tree.find(key.section);
    if (found == nullptr || found->kind != ConfigTree::Kind::kMap || found->find(key.old_name) == nullptr) continue;
    const std::string line =
        cat(key.section, ".", key.old_name, " is called ", key.section, ".", key.present_name, " now");
    ConfigTree section = *found;
    if (section.find(key.present_name) != nullptr)
      throw ConfigError(cat(source, ": ", line, ": expected one of the two names"));
    ConfigTree value = *section.find(key.old_name);
    section.erase(key.old_name);
    section.set(key.present_name, std::move(value));
    names.tree.set(key.section, std::move(section));
    names.renamed.push_back(line);
  }
  return names;
}

}  // namespace lancet
