#include "put_back.h"

#include <algorithm>
#include <map>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/output_folder.h"
#include "lancet/runtime/problem.h"
#include "push_journal.h"

namespace lancet {
namespace {

bool has(const std::vector<LoadedAdapter>& adapters, const LoadedAdapter& wanted) {
  return std::find(adapters.begin(), adapters.end(), wanted) != adapters.end();
}

/// Returns the names that a push may have changed.
std::set<std::string> touched(const PushRecord& record) {
  std::set<std::string> names{record.adapter.name, record.first_name};
  if (record.replaced) names.insert(record.replaced->name);
  return names;
}

std::vector<LoadedAdapter> those_of(const std::vector<LoadedAdapter>& adapters, const std::set<std::string>& names) {
  std::vector<LoadedAdapter> some;
  for (const LoadedAdapter& each : adapters)
    if (names.contains(each.name)) some.push_back(each);
  return some;
}

void put_back_named(InferenceServer& server, const std::set<std::string>& names,
                    const std::vector<LoadedAdapter>& before) {
  const std::vector<LoadedAdapter> now = those_of(server.adapters(), names);
  std::set<std::string> in_the_way;  // names that should come back, but belong to another adapter now
  for (const LoadedAdapter& each : now)
    if (find_adapter(before, each.name) != nullptr && !has(before, each)) in_the_way.insert(each.name);
  for (const std::string& name : in_the_way) server.unload(name);
  for (const LoadedAdapter& each : before)
    if (!has(now, each)) server.load(each);
  for (const LoadedAdapter& each : now)
    if (find_adapter(before, each.name) == nullptr) server.unload(each.name);
}

}  // namespace

const LoadedAdapter* find_adapter(const std::vector<LoadedAdapter>& adapters, const std::string& name) {
  const auto found =
      std::find_if(adapters.begin(), adapters.end(), [&](const LoadedAdapter& each) { return each.name == name; });
  return found == adapters.end() ? nullptr : &*found;
}

void put_back(InferenceServer& server, const PushRecord& record) {
  const std::set<std::string> names = touched(record);
  const std::vector<LoadedAdapter> before = those_of(record.before, names);
  if (server.is_named())
    put_back_named(server, names, before);
  else if (!before.empty())
    server.set_scales(before);
  const std::vector<LoadedAdapter> now = those_of(server.adapters(), names);
  const bool is_whole =
      std::all_of(before.begin(), before.end(), [&](const LoadedAdapter& each) { return has(now, each); });
  if (!is_whole || now.size() != before.size())
    throw ServerError(cat(record.server, ": expected the adapters that it had before, got others"));
}

PutBack try_to_put_back(InferenceServer& server, const PushRecord& record) {
  const Uncancelled to_its_end;
  try {
    put_back(server, record);
    return {true, "the server is as before"};
  } catch (
      const std::exception& error) {  // any exception: the state of the server is reported, not only the first error
    return {false, cat("the server is NOT known to be as before (", problem_of(error).message,
                       "): when it answers again, take '", record.adapter.name, "' back by lancet push --undo")};
  }
}

PushRecord undo_push(const std::filesystem::path& output, ServerAccess access) {
  const OutputLock lock(push_folder(output), kPushOutput);
  PushJournal journal(output);
  const std::string wanted = access.address.host.empty() ? std::string() : access.address.text();
  PushRecord* record = journal.last(wanted);
  if (record == nullptr)
    throw ConfigError(cat(output.string(), ": expected a push", wanted.empty() ? "" : " to " + wanted,
                          " that can be taken back, found none: lancet push ", output.string(), " --list shows them"));
  access.address = parse_http_address(record->server);
  const FoundServer found = find_server(access, record->kind);
  const Uncancelled to_its_end;
  put_back(*found.server, *record);
  PushJournal::set_state(*record, PushState::kTakenBack);
  if (record->replaced)
    if (PushRecord* earlier = journal.serving(record->server, record->replaced->name);
        earlier != nullptr && earlier != record)
      PushJournal::set_state(*earlier, PushState::kServing);
  try {
    journal.write();
  } catch (const std::exception& error) {
    throw CheckpointError(cat("'", record->adapter.name, "' is taken back: ", record->server,
                              " is as before that push. The journal of pushes does not say so, since it could not be ",
                              "written (", problem_of(error).message, "): once it can be, the same command notes it"));
  }
  return *record;
}

std::vector<ListedPush> list_pushes(const std::filesystem::path& output, const ServerAccess& access) {
  const PushJournal journal(output);
  std::vector<ListedPush> listed;
  std::map<std::string, std::optional<std::vector<LoadedAdapter>>> of_servers;
  for (const PushRecord& record : journal.records()) {
    const auto [place, is_new] = of_servers.try_emplace(record.server);
    if (is_new) {
      try {
        ServerAccess own = access;
        own.address = parse_http_address(record.server);
        place->second = find_server(own, record.kind).server->adapters();
      } catch (const ServerError& error) {
        log_warning(error.what());
      }
    }
    ListedPush each{.record = record, .is_there = {}};
    if (place->second) {
      const LoadedAdapter* there = find_adapter(*place->second, record.adapter.name);
      each.is_there = there != nullptr && there->path == record.adapter.path && there->scale > 0;
    }
    listed.push_back(std::move(each));
  }
  return listed;
}

}  // namespace lancet
