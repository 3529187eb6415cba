#include "push_journal.h"

#include <algorithm>
#include <array>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/journal/journal.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "lancet-pushes-1";
constexpr const char* kPushesFile = "pushes.json";
constexpr std::array kStateNames{"begun", "serving", "replaced", "taken back"};

Json adapter_json(const LoadedAdapter& adapter) {
  return {{"name", adapter.name}, {"path", adapter.path}, {"scale", adapter.scale}};
}

LoadedAdapter to_adapter(const Json& json) {
  return {json.at("name").get<std::string>(), json.at("path").get<std::string>(), json.at("scale").get<double>()};
}

PushState to_state(const std::string& name) {
  const auto found = std::find(kStateNames.begin(), kStateNames.end(), name);
  if (found == kStateNames.end())
    throw JsonProblem(cat("state: expected one of ", kStateNames[0], ", ..., got ", name));
  return static_cast<PushState>(found - kStateNames.begin());
}

PushRecord to_record(const Json& json) {
  PushRecord record{.server = json.at("server").get<std::string>(),
                    .kind = json.at("kind").get<std::string>(),
                    .adapter = to_adapter(json.at("adapter")),
                    .first_name = json.at("first_name").get<std::string>(),
                    .folder = json.at("folder").get<std::string>(),
                    .rank = json.at("rank").get<int64_t>(),
                    .state = to_state(json.at("state").get<std::string>()),
                    .when = json.at("when").get<std::string>()};
  for (const Json& each : json.at("before")) record.before.push_back(to_adapter(each));
  if (!json.at("replaced").is_null()) record.replaced = to_adapter(json.at("replaced"));
  return record;
}

std::vector<PushRecord> read(const fs::path& file) {
  std::vector<PushRecord> records;
  try {
    const Json json = parse_ordered_json(read_text_file(file, "pushes"));
    if (json.at("format") != kFormat)
      throw JsonProblem(cat("format: expected ", kFormat, ", got ", json.at("format").dump()));
    for (const Json& each : json.at("pushes")) records.push_back(to_record(each));
  } catch (const JsonProblem& problem) {
    throw CheckpointError(cat(file.string(), ": ", problem.what()));
  } catch (const nlohmann::json::exception& problem) {
    throw CheckpointError(cat(file.string(), ": expected what lancet push wrote there, got another file: ",
                              invalid_json_text(problem.what())));
  }
  return records;
}

}  // namespace

std::string push_state_name(PushState state) { return kStateNames[static_cast<size_t>(state)]; }

fs::path push_folder(const fs::path& output) { return sibling_of(output, ".pushed"); }

Json record_json(const PushRecord& record) {
  Json before = Json::array();
  for (const LoadedAdapter& each : record.before) before.push_back(adapter_json(each));
  return {{"server", record.server},
          {"kind", record.kind},
          {"adapter", adapter_json(record.adapter)},
          {"first_name", record.first_name},
          {"folder", record.folder.string()},
          {"rank", record.rank},
          {"state", push_state_name(record.state)},
          {"when", record.when},
          {"before", before},
          {"replaced", record.replaced ? adapter_json(*record.replaced) : Json(nullptr)}};
}

PushJournal::PushJournal(const fs::path& output) : file_(push_folder(output) / kPushesFile) {
  if (fs::exists(file_)) records_ = read(file_);
}

PushRecord* PushJournal::last(const std::string& server) {
  const auto found = std::find_if(records_.rbegin(), records_.rend(), [&](const PushRecord& each) {
    return (server.empty() || each.server == server) &&
           (each.state == PushState::kBegun || each.state == PushState::kServing);
  });
  return found == records_.rend() ? nullptr : &*found;
}

PushRecord* PushJournal::serving(const std::string& server, const std::string& name) {
  const auto found = std::find_if(records_.rbegin(), records_.rend(), [&](const PushRecord& each) {
    return each.server == server && each.adapter.name == name &&
           (each.state == PushState::kServing || each.state == PushState::kReplaced);
  });
  return found == records_.rend() ? nullptr : &*found;
}

PushRecord& PushJournal::add(PushRecord record) { return records_.emplace_back(std::move(record)); }

void PushJournal::set_state(PushRecord& record, PushState state) {
  record.state = state;
  record.when = utc_now();
}

void PushJournal::write() const {
  Json pushes = Json::array();
  for (const PushRecord& record : records_) pushes.push_back(record_json(record));
  make_folders(file_.parent_path());
  write_text_file(file_, dump_report({{"format", kFormat}, {"pushes", std::move(pushes)}}));
}

}  // namespace lancet
