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
constexpr Renamed kRenamed[] = {{"run", "frozen", "quantise_base"}, {"evaluate", "costs", "side_effects"}};

/// What an option of an editor may stand for, wherever a job has such options.
constexpr Renamed kShare{"", "attained_share", "realised_share"};

/// `where`: ends in a dot unless it is empty.
void rename_shares(ConfigTree& tree, const std::string& where, const std::string& source,
                   std::vector<std::string>& renamed) {
  for (ConfigTree& item : tree.items) rename_shares(item, where, source, renamed);
  for (auto& [key, value] : tree.entries) rename_shares(value, cat(where, key, "."), source, renamed);
  const ConfigTree* found = tree.kind == ConfigTree::Kind::kMap ? tree.find(kShare.old_name) : nullptr;
  if (found == nullptr) return;
  const std::string line = cat(where, kShare.old_name, " is called ", where, kShare.present_name, " now");
  if (tree.find(kShare.present_name) != nullptr)
    throw ConfigError(cat(source, ": ", line, ": expected one of the two names"));
  for (auto& [key, value] : tree.entries)
    if (key == kShare.old_name) key = kShare.present_name;
  renamed.push_back(line);
}

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
  rename_shares(names.tree, "", source, names.renamed);
  return names;
}

ConfigTree options_with_present_names(ConfigTree options, const std::string& source) {
  std::vector<std::string> renamed;
  rename_shares(options, "", source, renamed);
  return options;
}

}  // namespace lancet
