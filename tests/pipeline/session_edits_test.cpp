// Which edits stand in a session: kept in a folder, restored, taken back one by one, exported; under several methods.
#include "lancet/history/undo_job.h"
#include "session_jobs.h"

namespace lancet::testing {
namespace {

TEST_F(Sessions, GoOnFromEditsThatWereSavedAlone) {
  for (const char* editor : {kMemit, kAlphaEdit, kUltraEdit, kPruned}) {
    const std::string folder = cat("kept-", n_saved_);
    std::string two, three;
    {
      Session session(completed(editor), listener_);
      session.edit(some(0, 2));
      session.save_edits(folder_ / folder);
      session.edit(some(2, 4));
      session.save_edits(folder_ / folder);  // in the place of the first
      two = saved(session);
      session.edit(some(4, 6));
      three = saved(session);
    }
    EXPECT_FALSE(fs::exists(folder_ / folder / "model.safetensors"));
    Session session(completed(editor), listener_);
    session.restore(folder_ / folder);
    EXPECT_EQ(session.edits(), 2);
    EXPECT_EQ(saved(session), two) << editor;
    EXPECT_THROW(session.edit(some(0, 1)), ConfigError) << "an id of a restored edit";
    session.edit(some(4, 6));
    EXPECT_EQ(saved(session), three) << editor;
    session.undo();
    session.undo();  // batches that were written leave an entry
    EXPECT_EQ(session.history().journal().undone().size(), 2u);
    Session one(completed(editor), listener_);
    one.edit(some(0, 2));
    EXPECT_EQ(saved(session), saved(one)) << editor;
  }
}

TEST_F(Sessions, RefuseEditsOfAnotherModelMethodOrDamage) {
  Session session(completed(kMemit), listener_);
  session.edit(some(0, 2));
  session.save_edits(folder_ / "kept");
  EXPECT_THROW(session.restore(folder_ / "kept"), ConfigError) << "edits stand";
  Session other(completed(kAlphaEdit), listener_);
  EXPECT_THROW(other.restore(folder_ / "kept"), ConfigError);
  EXPECT_THROW(other.restore(folder_ / "nowhere"), ConfigError);
  for (const fs::directory_entry& file : fs::directory_iterator(folder_ / "kept" / "edits" / "changes"))
    fs::resize_file(file.path(), 100);
  Session damaged(completed(kMemit), listener_);
  EXPECT_THROW(damaged.restore(folder_ / "kept"), CheckpointError);
  EXPECT_EQ(damaged.edits(), 0);
  EXPECT_EQ(saved(damaged), bytes(tiny_.folder.path() / "model.safetensors"));
}

TEST_F(Sessions, AnyEditCanBeTakenBack) {
  for (const char* editor : {kMemit, kAlphaEdit, kPruned}) {
    const std::string output = cat("job-", n_saved_);
    Session session(completed(editor), listener_);
    for (size_t begin = 0; begin < 6; begin += 2) session.edit(some(begin, begin + 2));
    const std::vector<std::string> ids{some(1, 2)[0].id};
    edit(output, "requests.limit=6", editor);
    const UndoEntry entry = session.undo(ids);
    EXPECT_EQ(entry.mode, UndoMode::kDowndate);
    EXPECT_EQ(session.edits(), 3);
    run_undo_job({.output = folder_ / output, .selection = {.ids = ids}}, alone());
    EXPECT_EQ(saved(session), bytes(fs::path(output) / "model.safetensors")) << editor;
    EXPECT_THROW(session.undo(ids), ConfigError) << "it does not stand any more";
    EXPECT_THROW(session.undo(std::vector<std::string>()), ConfigError);
  }
}

TEST_F(Sessions, LastBatchesGoToTheBit) {
  for (const char* editor : {kMemit, kUltraEdit, kPruned}) {
    Session session(completed(editor), listener_);
    session.edit(some(0, 2));
    const std::string first = saved(session);
    session.edit(some(2, 4));
    session.edit(some(4, 6));
    std::vector<std::string> ids;
    for (const EditRequest& request : some(2, 6)) ids.push_back(request.id);
    EXPECT_EQ(session.undo(ids).mode, UndoMode::kLast);
    EXPECT_EQ(saved(session), first) << editor;
    session.undo();
    EXPECT_EQ(saved(session), bytes(tiny_.folder.path() / "model.safetensors")) << editor;
  }
}

TEST_F(Sessions, ATakingBackThatIsCancelledChangesNothing) {
  {
    Session session(completed(kAlphaEdit), listener_);
    session.edit(some(0, 2));
    session.edit(some(2, 4));
    session.save_edits(folder_ / "kept");
  }
  Session session(completed(kAlphaEdit), listener_);
  session.restore(folder_ / "kept");
  const std::string both = saved(session);
  fs::remove_all(folder_ / "cache");
  listener_.cancel_at("statistics");
  EXPECT_THROW(session.undo({some(0, 1)[0].id}), Cancelled);
  EXPECT_EQ(session.edits(), 2);
  EXPECT_EQ(saved(session), both);
  session.undo({some(0, 1)[0].id});
  EXPECT_NE(saved(session), both);
}

TEST_F(Sessions, OneSessionHasSeveralMethodsOneAfterTheOther) {
  Session session(completed(kMemit), listener_);
  const std::string unedited = saved(session);
  for (const char* editor : {kAlphaEdit, kUltraEdit, kMemit}) {
    session.use(completed(editor));
    session.edit(some(0, 2));
    Session alone(completed(editor), listener_);
    alone.edit(some(0, 2));
    EXPECT_EQ(saved(session), saved(alone)) << editor;
    session.undo();
    EXPECT_EQ(saved(session), unedited) << editor;
  }
  session.edit(some(0, 2));
  EXPECT_THROW(session.use(completed(kAlphaEdit)), ConfigError) << "edits of another method stand";
  const CompletedJob elsewhere = complete_job(
      parse_config(cat("{model: ", tiny_.folder.path().string(), ", editor: ", kMemit, ", run: {dtype: f32}}"), "test"),
      {folder_.path(), "test"}, {}, EditorChoice::kNamed);
  EXPECT_THROW(session.use(elsewhere), ConfigError);
  session.edit(some(2, 4));  // goes on as it was
  EXPECT_EQ(session.edits(), 2);
}

TEST_F(Sessions, WhatStandsIsMeasuredAgainWhenAsked) {
  Session session(completed(kMemit), listener_);
  EXPECT_TRUE(session.measure().requests.empty());
  const EditRequest first = some(0, 1)[0];
  session.edit(std::vector{first});
  EditRequest other = some(1, 2)[0];
  other.prompt = first.prompt;
  other.subject = first.subject;
  EXPECT_EQ(session.edit(std::vector{other}).at_odds.size(), other.target == first.target ? 0u : 1u);
  const std::string weights = saved(session);
  const StandingMeasure measure = session.measure();
  ASSERT_EQ(measure.requests.size(), 2u);
  const Evaluation now = session.evaluate(measure.requests);
  const Journal journal = session.history().journal();
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(journal.measured().at(measure.requests[i].id).after, means_of(now.requests[i]));
  EXPECT_EQ(saved(session), weights) << "measuring changes nothing";
  session.save_edits(folder_ / "kept");
  EXPECT_EQ(Journal::read(folder_ / "kept" / "edits").text(), journal.text());
  EXPECT_TRUE(session.undo());
  EXPECT_EQ(session.measure().requests.size(), 1u);
}

TEST_F(Sessions, AnAdapterIsThatOfWhatStands) {
  Session session(completed(kMemit), listener_);
  EXPECT_THROW(session.export_adapter({.edited = {}, .out = folder_ / "adapter"}), ConfigError);
  session.edit(some(0, 2));
  session.save(folder_ / "whole");
  session.export_adapter({.edited = {}, .out = folder_ / "adapter"});
  export_adapter({.edited = folder_ / "whole", .out = folder_ / "other"});
  EXPECT_EQ(bytes("adapter/adapter_model.safetensors"), bytes("other/adapter_model.safetensors"));
}

}  // namespace
}  // namespace lancet::testing
