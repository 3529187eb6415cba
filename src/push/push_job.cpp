#include "lancet/push/push_job.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <thread>

#include "asked_prompts.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/journal/journal.h"
#include "lancet/runtime/problem.h"
#include "push_journal.h"
#include "put_back.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenTries{100};
constexpr const char* kGgufAdapterFile = "adapter.gguf";
constexpr size_t kHashDigits = 8;

Journal read_edits(const fs::path& output) {
  const std::optional<fs::path> found = find_journal(output);
  if (!found)
    throw ConfigError(cat(output.string(), ": expected an output of lancet edit with its folder ", kEditsFolder,
                          "/, got a folder without one"));
  Journal journal = Journal::read(*found);
  if (journal.batches().empty())
    throw ConfigError(cat(output.string(), ": no edit stands in it: nothing can be pushed"));
  return journal;
}

/// Returns a name that can be part of a path, the name of a model and a word of a command line, and that differs for
/// other edits.
std::string name_of(const PushJob& job, const Journal& journal) {
  std::string name = sibling_of(job.output, "").filename().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_'; }, '-');
  return name + "-" + ContentHash().add(journal.text()).add(job.largest_rank).hex().substr(0, kHashDigits);
}

void check_name(const std::string& name) {
  const auto is_good = [](unsigned char c) { return c > ' ' && c != ':' && c != 0x7f; };
  if (!std::all_of(name.begin(), name.end(), is_good))
    throw ConfigError(cat("--name '", name, "': expected a name without blanks and ':'"));
}

/// Throws: ConfigError if the server is known to have another model than the edited one. Returns what could not be
/// checked.
std::vector<std::string> check_base(const PushJob& job, const Journal& journal, const ServerFacts& facts) {
  std::vector<std::string> notes;
  std::error_code error;
  const fs::path served = facts.model_path;
  if (fs::equivalent(served, job.output, error))
    throw ConfigError(cat("the server has ", facts.model_path,
                          ", which is edited already: expected the model before its "
                          "edits, ",
                          journal.base().folder));
  const fs::path config = served / "config.json";
  if (fs::is_regular_file(config, error)) {
    if (ContentHash().add(bare_floats_as_objects(read_text_file(config, "config.json"))).hex() != journal.base().config)
      throw ConfigError(cat("the server has ", facts.model_path,
                            ", whose config.json is another one than that of the "
                            "edited model, ",
                            journal.base().folder));
  } else if (const fs::path edited = journal.base().folder; served.filename() != edited.filename()) {
    notes.push_back(cat("the server names its model '", facts.model_path.empty() ? facts.model : facts.model_path,
                        "', the edits are of '", edited.string(), "': that both are the same weights is not known"));
  }
  if (!facts.quantisation.empty() && facts.quantisation != "none")
    notes.push_back(cat("the server's weights are quantised (", facts.quantisation,
                        "): edits of others may not hold there; the table says whether they do"));
  return notes;
}

class Push {
 public:
  explicit Push(const PushJob& job)
      : job_(job), edits_(read_edits(job.output)), lock_(push_folder(job.output), kPushOutput), journal_(job.output) {}

  PushReport run() {
    const auto begun = Clock::now();
    FoundServer found = find_server(job_.access, job_.server);
    server_ = std::move(found.server);
    report_.kind = found.kind;
    report_.server = server_->facts();
    report_.notes = check_base(job_, edits_, report_.server);
    if (!server_->format()) throw ConfigError(server_->why_not(report_.server, {}, {}));
    plan_names();
    export_files();
    if (const std::string why = server_->why_not(report_.server, report_.adapter, record_.adapter); !why.empty())
      throw ConfigError(cat(job_.access.address.text(), ": ", why));
    report_.asked = prompts_to_ask(edits_, job_.most_asked);
    const std::vector<std::string> before = ask_prompts(*server_, report_.asked, {}, "ask before");
    for (size_t i = 0; i < before.size(); ++i) report_.asked[i].before = before[i];
    change_server();
    report_.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    report_.record = record_;
    return std::move(report_);
  }

 private:
  /// Plans the adapter's name, the name for the trial, and which adapter it replaces.
  void plan_names() {
    record_.server = job_.access.address.text();
    record_.kind = report_.kind;
    record_.before = server_->adapters();
    const std::string own = name_of(job_, edits_);
    folder_name_ = own;
    find_replaced();
    if (!server_->is_named()) {
      if (!job_.name.empty())
        throw ConfigError("--name: llama.cpp's server has no names of adapters: whoever asks gets those with a scale");
      record_.adapter.name = record_.first_name = own + "/" + kGgufAdapterFile;
      if (const LoadedAdapter* there = find_adapter(record_.before, record_.first_name);
          there != nullptr && there->scale > 0)
        refuse_served();
      return;
    }
    check_name(job_.name);
    record_.adapter.name = job_.name.empty() ? own : job_.name;
    const bool is_base = record_.adapter.name == report_.server.model;
    if (is_base && !server_->takes_base_name())
      throw ConfigError(cat("--name ", job_.name, ": the base model's own name can be taken in vLLM alone"));
    const LoadedAdapter* there = find_adapter(record_.before, record_.adapter.name);
    if (there != nullptr && record_.adapter.name == own) refuse_served();
    if (there != nullptr && !(record_.replaced && record_.replaced->name == there->name)) {
      if (journal_.serving(record_.server, there->name) == nullptr)
        throw ConfigError(cat("--name ", job_.name,
                              ": the server has an adapter of that name, which lancet push did not "
                              "bring: --instead-of ",
                              job_.name, " replaces it, another --name leaves it"));
      record_.replaced = *there;
    }
    record_.first_name = there == nullptr && !is_base ? record_.adapter.name : own;
    while (find_adapter(record_.before, record_.first_name) != nullptr) record_.first_name += "-new";
  }

  [[noreturn]] void refuse_served() const {
    throw ConfigError(cat(job_.access.address.text(), ": it serves these edits already, as '", record_.adapter.name,
                          "': lancet push ", job_.output.string(), " --undo takes them back"));
  }

  void find_replaced() {
    const LoadedAdapter* there = nullptr;
    if (!job_.instead_of.empty()) {
      there = find_adapter(record_.before, job_.instead_of);
      for (const LoadedAdapter& each : record_.before)
        if (there == nullptr && each.path == job_.instead_of) there = &each;
      if (there == nullptr)
        throw ConfigError(cat("--instead-of ", job_.instead_of, ": the server has no adapter of that name"));
    } else if (const PushRecord* last = journal_.last(record_.server); last != nullptr) {
      there = find_adapter(record_.before, last->adapter.name);
    }
    if (there != nullptr && there->scale > 0) record_.replaced = *there;
  }

  void export_files() {
    const fs::path in = job_.adapter_dir.empty() ? push_folder(job_.output) : job_.adapter_dir;
    record_.folder = fs::absolute(in / folder_name_).lexically_normal();
    ExportAdapterJob exported{.edited = job_.output,
                              .model = job_.model,
                              .out = record_.folder,
                              .if_exists = IfExists::kReplace,
                              .format = *server_->format()};
    exported.dtype = factor_type_of(exported.format);
    exported.largest_rank = job_.largest_rank;
    exported.provenance = Provenance::kStripped;
    report_.adapter = export_adapter(exported);
    record_.rank = report_.adapter.rank;
    const fs::path seen = job_.server_path.empty() ? record_.folder : job_.server_path / folder_name_;
    record_.adapter.path = server_->is_named() ? seen.string() : (seen / kGgufAdapterFile).string();
    if (first_invalid_utf8(record_.adapter.path))
      throw ConfigError(cat(record_.adapter.path,
                            ": expected a folder whose name is UTF-8, since a server cannot be told "
                            "of another: --adapter-dir names one, --server-path what the server calls it"));
    if (const LoadedAdapter* there = find_adapter(record_.before, record_.adapter.name);
        there != nullptr && !server_->is_named())
      record_.adapter.path = there->path;  // the name from the server's start
  }

  /// Loads the adapter and asks the server. Before this the journal says that something may be loaded. After any
  /// failure the server is put back.
  void change_server() {
    PushRecord& noted = journal_.add(record_);
    PushJournal::set_state(noted, PushState::kBegun);
    journal_.write();
    try {
      try_it();
      report_.unmet = unmet_push_thresholds(job_, report_.asked);
      if (report_.unmet.empty()) give_to_all();
    } catch (const Cancelled&) {
      if (const PutBack back = take_back(noted); !back.is_as_before || !report_.unnoted.empty())
        throw ServerError(cat("cancelled; ", told_of(back)));
      throw;
    } catch (const std::exception& error) {  // after any exception, the adapter must not stay loaded
      const Problem problem = problem_of(error);
      const std::string words = cat(problem.message, "; ", told_of(take_back(noted)));
      if (dynamic_cast<const Error*>(&error) == nullptr) throw Error(problem.code, words);
      throw ServerError(words);
    }
    if (!report_.unmet.empty()) return report_.notes.push_back(take_back(noted).words);
    if (record_.replaced)
      if (PushRecord* earlier = journal_.serving(record_.server, record_.replaced->name); earlier != nullptr)
        PushJournal::set_state(*earlier, PushState::kReplaced);
    end_with(noted, PushState::kServing);
  }

  PutBack take_back(PushRecord& noted) {
    const PutBack back = try_to_put_back(*server_, record_);
    end_with(noted, back.is_as_before ? PushState::kTakenBack : PushState::kBegun);
    return back;
  }

  std::string told_of(const PutBack& back) const {
    return report_.unnoted.empty() ? back.words : cat(back.words, "; ", report_.unnoted);
  }

  /// Reports the server's present state. A disk that refuses the journal is reported in addition, not instead.
  void end_with(PushRecord& noted, PushState state) {
    PushJournal::set_state(noted, state);
    record_ = noted;
    try {
      journal_.write();
    } catch (const std::exception& error) {
      if (state == PushState::kBegun) return;  // the journal already says so
      report_.unnoted =
          cat("the journal of pushes says '", push_state_name(PushState::kBegun), "' of '", record_.adapter.name,
              "', not '", push_state_name(state), "', since it could not be written (", problem_of(error).message,
              "): once it can be, lancet push ", job_.output.string(), " --undo ",
              state == PushState::kServing ? "takes it back" : "notes that nothing is left");
    }
  }

  /// Loads the adapter under its own name, and asks it.
  void try_it() {
    if (server_->is_named()) server_->load({record_.first_name, record_.adapter.path});
    wait_for(record_.first_name);
    flush();
    ask_after(record_.first_name);
  }

  void flush() {
    if (const std::string left = server_->flush_caches();
        !left.empty() && std::find(report_.notes.begin(), report_.notes.end(), left) == report_.notes.end())
      report_.notes.push_back(left);
  }

  void ask_after(const std::string& name) {
    const std::string without = record_.replaced ? record_.replaced->name : "";
    const std::vector<std::string> after = ask_prompts(*server_, report_.asked, {name, without}, "ask after");
    for (size_t i = 0; i < after.size(); ++i) report_.asked[i].after = after[i];
  }

  /// Replaces the earlier adapter, which answered until now.
  void give_to_all() {
    if (!server_->is_named()) {
      std::vector<LoadedAdapter> scales{{record_.adapter.name, record_.adapter.path, 1}};
      if (record_.replaced) scales.push_back({record_.replaced->name, record_.replaced->path, 0});
      server_->set_scales(scales);
      return;
    }
    const std::string& name = record_.adapter.name;
    if (record_.first_name != name) {
      if (find_adapter(record_.before, name) != nullptr) server_->unload(name);
      server_->load({name, record_.adapter.path});
      wait_for(name);
      flush();
      ask_after(name);  // the name belonged to another adapter, whose states may still be in a cache
      report_.unmet = unmet_push_thresholds(job_, report_.asked);
      if (!report_.unmet.empty()) return;
      server_->unload(record_.first_name);
    }
    if (record_.replaced && record_.replaced->name != name) server_->unload(record_.replaced->name);
  }

  void wait_for(const std::string& name) {
    const auto until = Clock::now() + job_.access.timeout;
    for (;;) {
      try {
        server_->complete({.adapter = name, .text = report_.asked.front().prompt, .max_tokens = 1});
        return;
      } catch (const ServerError& error) {
        if (Clock::now() >= until)
          throw ServerError(cat(error.what(), ": expected an answer of '", name, "' within ",
                                job_.access.timeout.count(), " s (--timeout)"));
      }
      reporter().step();
      std::this_thread::sleep_for(kBetweenTries);
    }
  }

  const PushJob& job_;
  const Journal edits_;
  const OutputLock lock_;
  PushJournal journal_;
  std::unique_ptr<InferenceServer> server_;
  std::string folder_name_;
  PushRecord record_;
  PushReport report_;
};

}  // namespace

PushReport run_push_job(const PushJob& job) { return Push(job).run(); }

}  // namespace lancet
