// The front door: what a session does to a model is what jobs do to files, all or nothing, and can be taken back.
#include "lancet/run/session.h"

#include <atomic>
#include <set>
#include <thread>

#include "stream_jobs.h"

namespace lancet::testing {
namespace {

constexpr const char* kAlphaEdit =
    "{method: alphaedit, layers: [0, 1], null_space_below: 1, ridge: 1, values: {steps: 3, lr: 0.1}}";
constexpr const char* kUltraEdit = "{method: ultraedit, modules: {down: [0, 1]}, lr: 1e-3, batch: 2}";
constexpr const char* kPruned =
    "{method: memit, layers: [0, 1], covariance_weight: 20, values: {steps: 3, lr: 0.1}, prune: {log_base: 1.2}}";
constexpr const char* kRect =
    "{method: memit, layers: [0, 1], covariance_weight: 20, values: {steps: 3, lr: 0.1}, rect: {keep: 0.3}}";

/// Keeps what it is told. As the stage `cancel_in` begins, another thread cancels the work.
class Listener final : public Reporter {
 public:
  explicit Listener(std::string cancel_in = "") : cancel_in_(std::move(cancel_in)) {}
  /// While nobody reports.
  void cancel_at(std::string stage) {
    cancel_in_ = std::move(stage);
    is_done_ = false;
  }

  std::vector<std::string> stages() const { return stages_; }

 protected:
  void on_log(LogLevel, std::string_view) override {}
  void on_progress(const StageProgress& progress) override {
    if (stages_.empty() || stages_.back() != progress.stage) stages_.push_back(progress.stage);
    if (progress.stage != cancel_in_ || progress.is_finished || is_done_) return;
    is_done_ = true;
    std::jthread([this] { cancel(); }).join();
  }

 private:
  std::string cancel_in_;
  bool is_done_ = false;
  std::vector<std::string> stages_;
};

class Sessions : public StreamJobs {
 protected:
  CompletedJob completed(const std::string& editor, const std::string& more = "") const {
    const std::string text =
        cat("{model: ", tiny_.folder.path().string(), ", editor: ", editor,
            ", statistics: {corpus: corpus.txt, tokens: 3000, cache: cache, ridge: 1e-3}, evaluate: [efficacy], ",
            "run: {dtype: f64, seed: 3}", more, "}");
    return complete_job(parse_config(text, "test"), {folder_.path(), "test"}, {}, EditorChoice::kNamed);
  }

  /// Requests [begin, end) of the jobs'.
  static std::vector<EditRequest> some(size_t begin, size_t end) {
    const std::vector<EditRequest> all = some_requests(8);
    return {all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end)};
  }

  /// The weights as they are, by what the model would be saved as.
  std::string saved(Session& session) {
    const std::string name = cat("saved-", ++n_saved_);
    session.save(folder_ / name);
    return bytes(fs::path(name) / "model.safetensors");
  }

  int n_saved_ = 0;
  Listener listener_;
};

TEST_F(Sessions, EditsAreTheBatchesOfAStream) {
  for (const char* editor : {kMemit, kAlphaEdit, kUltraEdit, kRect, kPruned}) {
    const std::string output = cat("job-", n_saved_);
    edit(output, "", editor);
    Session session(completed(editor), listener_);
    for (size_t begin = 0; begin < 8; begin += 2) {
      const EditReport report = session.edit(some(begin, begin + 2));
      EXPECT_EQ(report.earlier_edits, static_cast<int64_t>(begin));
      EXPECT_EQ(report.verdicts.size(), 2u);
    }
    EXPECT_EQ(session.edits(), 4);
    session.save(folder_ / cat(output, "-session"));
    for (const char* file : {"model.safetensors", "requests.jsonl"})
      EXPECT_EQ(bytes(fs::path(cat(output, "-session")) / file), bytes(fs::path(output) / file)) << editor << file;
    EXPECT_EQ(edit_files(cat(output, "-session")), edit_files(output)) << editor;
    ++n_saved_;
  }
}

TEST_F(Sessions, AJobGoesOnFromWhatASessionSaved) {
  Session session(completed(kMemit), listener_);
  session.edit(some(0, 2));
  session.edit(some(2, 4));
  session.save(folder_ / "half");
  edit("rest", "requests.skip=4 continue_from=half");
  edit("whole");
  EXPECT_EQ(bytes("rest/model.safetensors"), bytes("whole/model.safetensors"));
}

TEST_F(Sessions, UndoGivesTheBitsFromBeforeTheLastEdit) {
  for (const char* editor : {kMemit, kAlphaEdit, kUltraEdit, kRect, kPruned}) {
    Session session(completed(editor), listener_);
    std::vector<std::string> states{saved(session)};
    EXPECT_EQ(states[0], bytes(tiny_.folder.path() / "model.safetensors")) << editor;
    for (size_t begin = 0; begin < 6; begin += 2) {
      session.edit(some(begin, begin + 2));
      states.push_back(saved(session));
      EXPECT_NE(states.back(), states[states.size() - 2]) << editor;
    }
    session.undo();
    EXPECT_EQ(saved(session), states[2]) << editor;
    session.edit(some(4, 6));  // the method's state went back too
    EXPECT_EQ(saved(session), states[3]) << editor;
    for (size_t left = 3; left-- > 0;) {
      EXPECT_TRUE(session.undo());
      EXPECT_EQ(saved(session), states[left]) << editor;
    }
    EXPECT_FALSE(session.undo());
  }
}

TEST_F(Sessions, EvaluationAndAnswersAreOfTheWeightsAsTheyAre) {
  Session session(completed(kMemit), listener_);
  const std::vector<EditRequest> requests = some(0, 2);
  const std::vector<std::string> prompts{requests[0].prompt.text};
  const auto chance = [&] { return session.evaluate(requests).target_probabilities; };
  const std::vector<double> before = chance();
  const std::vector<TokenId> said = session.generate(prompts, {.tokens = 5})[0].ids;
  const EditReport report = session.edit(requests);
  EXPECT_EQ(report.before.target_probabilities, before);
  EXPECT_EQ(chance(), report.after.target_probabilities);
  EXPECT_NE(chance(), before);
  session.undo();
  EXPECT_EQ(chance(), before);
  EXPECT_EQ(session.generate(prompts, {.tokens = 5})[0].ids, said);
}

/// Work that ends in every stage that an edit was seen to have.
TEST_F(Sessions, AnEditThatIsCancelledInAnyStageLeavesTheWeightsAsTheyWere) {
  std::set<std::string> stages;
  {
    Listener all;
    Session session(completed(kMemit), all);
    session.edit(some(0, 2));
    session.edit(some(2, 4));
    for (const std::string& stage : all.stages()) stages.insert(stage);
    fs::remove_all(folder_ / "cache");
  }
  for (const char* stage : {"statistics", "values", "weights", "evaluate before", "evaluate after"})
    EXPECT_TRUE(stages.contains(stage)) << stage;
  const std::string unedited = bytes(tiny_.folder.path() / "model.safetensors");
  for (const std::string& stage : stages) {
    if (stage.starts_with("loading")) continue;  // there is no session yet: below
    fs::remove_all(folder_ / "cache");
    Listener listener(stage);
    Session session(completed(kMemit), listener);
    EXPECT_THROW(session.edit(some(0, 2)), Cancelled) << stage;
    EXPECT_EQ(session.edits(), 0);
    EXPECT_EQ(saved(session), unedited) << stage;
    session.edit(some(0, 2));  // goes on as if nothing had been
    const std::string edited = saved(session);
    Session other(completed(kMemit), listener_);
    other.edit(some(0, 2));
    EXPECT_EQ(saved(other), edited) << stage;
  }
}

TEST_F(Sessions, ASecondEditThatIsCancelledLeavesTheFirst) {
  for (const char* editor : {kMemit, kPruned, kRect}) {
    Session session(completed(editor), listener_);
    session.edit(some(0, 2));
    const std::string first = saved(session);
    session.edit(some(2, 4));
    const std::string second = saved(session);
    session.undo();
    for (const char* stage : {"evaluate before", "values", "weights", "evaluate after"}) {
      listener_.cancel_at(stage);
      EXPECT_THROW(session.edit(some(2, 4)), Cancelled) << editor << stage;
      EXPECT_EQ(saved(session), first) << editor << stage;
    }
    session.edit(some(2, 4));
    EXPECT_EQ(saved(session), second) << editor;
  }
}

TEST_F(Sessions, LoadingAndSavingCanBeCancelled) {
  Listener loading;
  loading.cancel();
  EXPECT_THROW(Session(completed(kMemit), loading), Cancelled);

  Session session(completed(kMemit), listener_);
  session.edit(some(0, 2));
  std::atomic<bool> saves{true};
  std::jthread canceller([&] {
    while (saves) session.cancel();
  });
  EXPECT_THROW(session.save(folder_ / "cancelled"), Cancelled);
  saves = false;
  canceller.join();
  EXPECT_FALSE(fs::exists(folder_ / "cancelled"));
  session.save(folder_ / "cancelled");
  EXPECT_TRUE(fs::exists(folder_ / "cancelled" / "model.safetensors"));
}

TEST_F(Sessions, TwoInOneProcessTellTheirOwnReporters) {
  Listener one, other;
  Session first(completed(kMemit), one), second(completed(kUltraEdit), other);
  std::jthread beside([&] { first.edit(some(0, 2)); });
  second.edit(some(2, 4));
  beside.join();
  const auto has = [](const Listener& listener, const char* stage) {
    const std::vector<std::string> stages = listener.stages();
    return std::ranges::find(stages, stage) != stages.end();
  };
  EXPECT_TRUE(has(one, "values"));
  EXPECT_FALSE(has(other, "values"));
  EXPECT_GT(one.steps(), 0);
}

TEST_F(Sessions, FactsAreRequests) {
  Session session(completed(kMemit), listener_);
  const std::vector<Fact> facts{{"{} was born in", "Ada Vane", "Paris"}, {"The home of Bo Reed is", "Bo Reed", "Rome"}};
  EXPECT_EQ(session.edit(facts).requests[1].id, "1");
  EXPECT_EQ(session.edit(std::vector<Fact>{{"{} likes", "Cy Moss", "tea"}}).requests[0].id, "2");
  EXPECT_THROW(session.edit(std::vector<Fact>{{"{} likes {}", "Cy Moss", "tea"}}), ConfigError);
}

TEST_F(Sessions, RefuseWhatIsAJobs) {
  for (const char* section : {"schedule: {batch: 2}", "output: {dir: out}", "requests: {path: requests.jsonl}",
                              "accept: {efficacy_prob: 0.5}", "continue_from: out"}) {
    try {
      Session(completed(kMemit, cat(", ", section)), listener_);
      FAIL() << section;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("it is a job's, and this is a session's"), std::string::npos)
          << error.what();
    }
  }
  Session session(completed(kMemit), listener_);
  session.edit(some(0, 2));
  EXPECT_THROW(session.edit(some(0, 1)), ConfigError) << "an id of an earlier edit";
  EXPECT_THROW(session.edit(std::vector<EditRequest>()), ConfigError);
  EXPECT_THROW(session.save(tiny_.folder.path() / "inside"), ConfigError);
  EXPECT_EQ(session.edits(), 1);
}

}  // namespace
}  // namespace lancet::testing
