// The front door: what a session does to a model is what jobs do to files, all or nothing, and can be taken back.
#include "lancet/session/session.h"

#include <atomic>

#include "session_jobs.h"

namespace lancet::testing {
namespace {

void ask_with(Session& session, AskedWeights weights, const std::function<void(const CausalLM& model)>& use) {
  session.ask_in_turns([&](const CausalLM& model, const PutWeights& put) {
    put(weights);
    use(model);
  });
}

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

TEST_F(Sessions, AreAskedWithoutTheirEditsAndKeepThem) {
  for (const char* editor : {kMemit, kPruned}) {
    Session session(completed(editor), listener_);
    const std::vector<std::string> prompts{some(0, 1)[0].prompt.text};
    const auto weights = [](const CausalLM& model) {
      std::vector<Tensor> all;
      for (int64_t layer = 0; layer < 2; ++layer) all.push_back(model.weight({WeightKind::kDown, layer}).clone());
      return all;
    };
    const auto equal = [](const std::vector<Tensor>& one, const std::vector<Tensor>& other) {
      return std::ranges::equal(one, other, [](const Tensor& a, const Tensor& b) { return a.equal(b); });
    };
    std::vector<Tensor> base, edited, asked;
    ask_with(session, AskedWeights::kUnedited, [&](const CausalLM& model) { base = weights(model); });
    session.edit(some(0, 2));
    session.edit(some(2, 4));
    ask_with(session, AskedWeights::kEdited, [&](const CausalLM& model) { edited = weights(model); });
    EXPECT_FALSE(equal(edited, base)) << editor;
    const std::string before = saved(session);
    ask_with(session, AskedWeights::kUnedited, [&](const CausalLM& model) { asked = weights(model); });
    EXPECT_TRUE(equal(asked, base)) << editor;
    EXPECT_TRUE(equal(weights(session.model()), edited)) << editor;
    EXPECT_THROW(ask_with(session, AskedWeights::kUnedited,
                          [&](const CausalLM& model) {
                            EXPECT_TRUE(equal(weights(model), base)) << editor;
                            listener_.cancel();
                            count_progress();
                          }),
                 Cancelled);
    EXPECT_TRUE(equal(weights(session.model()), edited)) << editor;
    EXPECT_EQ(saved(session), before) << editor;
    session.undo();
    session.undo();
    EXPECT_TRUE(equal(weights(session.model()), base)) << editor;
  }
}

TEST_F(Sessions, AnswerByBothWeightsInTurnsAsByEachAlone) {
  Session session(completed(kMemit), listener_);
  const std::string prompt = some(0, 1)[0].prompt.text;
  session.edit(some(0, 2));
  const TextGenerator generator(session.files());
  const std::vector<AskedWeights> both{AskedWeights::kUnedited, AskedWeights::kEdited};
  const auto weight = [](const CausalLM& model) { return model.weight({WeightKind::kDown, 0}).clone(); };
  const Tensor edited = weight(session.model());
  for (const SamplingOptions& sampling : {SamplingOptions(), SamplingOptions{.temperature = 1.5, .seed = 3}}) {
    const GenerateTextOptions how{.sampling = sampling, .tokens = 12};
    std::map<AskedWeights, std::string> alone, told;
    for (const AskedWeights weights : both)
      ask_with(session, weights, [&](const CausalLM& model) {
        alone[weights] = generator.answer(model, {&prompt, 1}, how)[0].text;
      });
    std::vector<AskedWeights> turns;
    const auto ask_both = [&](size_t most) {
      session.ask_in_turns([&](const CausalLM& model, const PutWeights& put) {
        generator.answer_in_turns(model, {both, put}, prompt, how, [&](AskedWeights weights, const std::string& text) {
          told[weights] += text;
          turns.push_back(weights);
          if (turns.size() == most) listener_.cancel();
        });
      });
    };
    ask_both(100);
    EXPECT_EQ(told, alone);
    EXPECT_NE(alone[both[0]], alone[both[1]]);
    ASSERT_GE(turns.size(), 6);
    EXPECT_NE(turns[0], turns[1]);
    EXPECT_FALSE(std::ranges::is_sorted(turns) || std::ranges::is_sorted(turns, std::greater<>()));
    EXPECT_TRUE(weight(session.model()).equal(edited));
    for (const size_t most : {1, 2, 3}) {  // stopped by either weights
      turns.clear();
      EXPECT_THROW(ask_both(most), Cancelled);
      EXPECT_EQ(turns.size(), most);
      EXPECT_TRUE(weight(session.model()).equal(edited));
    }
  }
}

TEST_F(Sessions, MeasureNoTextBeyondTheModelsPositions) {
  Session session(completed(kMemit), listener_);
  std::vector<EditRequest> requests = some(0, 2);
  std::string& words = requests[1].target_true.emplace("word");  // what efficacy scores too
  while (session.files().tokenizer->ids(words).size() <= 256) words += " word";
  const auto expect_refused = [&](const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "expected a ConfigError";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("the model's 256 positions"), std::string::npos) << error.what();
    }
  };
  expect_refused([&] { session.evaluate(requests); });
  expect_refused([&] { session.edit(requests); });
  EXPECT_EQ(session.edits(), 0);
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
  session.save_edits(folder_ / "kept");
  Session again(completed(kMemit), listener_);
  again.restore(folder_ / "kept");
  EXPECT_EQ(again.edit(std::vector<Fact>{{"{} hates", "Cy Moss", "tea"}}).requests[0].id, "3");
}

/// Takes out batches in the middle: what `lancet undo --mode downdate` makes of the same output.
/// A downdate solves later batches again, for which it makes statistics: every stage of it can be cancelled.
TEST_F(Sessions, TheLastBatchIsThatOfTheHistory) {
  Session session(completed(kMemit), listener_);
  EXPECT_THROW(session.last_batch(), ConfigError);
  session.edit(some(0, 2));
  session.edit(some(2, 4));
  const EditedBatch last = session.last_batch(), expected = session.history().batches().back();
  ASSERT_EQ(last.changes.size(), expected.changes.size());
  ASSERT_EQ(last.systems.size(), expected.systems.size());
  for (size_t i = 0; i < last.systems.size(); ++i)
    EXPECT_TRUE(last.systems[i].keys_FN.is_same(expected.systems[i].keys_FN)) << "shared, not copied";
}

TEST_F(Sessions, MemoryIsPlannedForAsManyRequestsAsOneSays) {
  CompletedJob job = completed(kMemit);
  job.tree.set("run", parse_config("{dtype: f64, devices: ['cpu=64MB']}", "test"));
  Session(job, listener_, 2);
  EXPECT_THROW(Session(job, listener_, 1'000'000), PlacementError);
  for (const int64_t requests : {int64_t{0}, int64_t{1} << 50})
    EXPECT_THROW(Session(job, listener_, requests), ConfigError);
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
