// Random edits, undos and kills of one session after another on one folder, as `lancet serve` keeps its edits in one.
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "lancet/io/files.h"
#include "session_jobs.h"

namespace lancet::testing {
namespace {

constexpr uint32_t kSeed = 20261124;

int sequences() { return std::getenv("LANCET_TEST_FULL") != nullptr ? 300 : 12; }

std::vector<std::string> standing_ids(const Session& session) {
  const EditHistory history = session.history();  // of which the loop keeps parts
  std::vector<std::string> ids;
  for (const BatchEntry& batch : history.journal().batches())
    for (const EditRecord& edit : batch.edits) ids.push_back(edit.request.id);
  return ids;
}

class SessionSequences : public Sessions {
 protected:
  /// A session on what the folder holds, with the last one gone without a word.
  std::unique_ptr<Session> started(const fs::path& kept) {
    auto session = std::make_unique<Session>(completed(kMemit), listener_);
    if (fs::exists(kept)) session->restore(kept);
    return session;
  }

  /// Edits a fact that does not stand, or takes one back.
  void change(Session& session, std::mt19937& random) {
    const std::vector<std::string> ids = standing_ids(session);
    const size_t way = random() % 3;
    if (way == 0 && !ids.empty()) {
      session.undo({ids[random() % ids.size()]});
    } else if (way == 1 && !ids.empty()) {
      session.undo();
    } else {
      const EditRequest next = some(n_edited_ % 8, n_edited_ % 8 + 1).front();
      if (std::ranges::count(ids, next.id) == 0) session.edit(std::vector{next});
      ++n_edited_;
    }
  }

  size_t n_edited_ = 0;
};

TEST_F(SessionSequences, WhatStoodStandsAgain) {
  std::mt19937 random(kSeed);
  for (int sequence = 0; sequence < sequences(); ++sequence) {
    SCOPED_TRACE(cat("seed ", kSeed, ", sequence ", sequence));
    const fs::path kept = folder_ / cat("kept-", sequence);
    std::unique_ptr<Session> session = started(kept);
    for (int step = 0; step < 6; ++step) {
      change(*session, random);
      session->save_edits(kept);
      if (random() % 3 != 0) continue;
      const std::string weights = saved(*session);
      const std::vector<std::string> ids = standing_ids(*session);
      session.reset();
      session = started(kept);
      ASSERT_EQ(standing_ids(*session), ids);
      ASSERT_EQ(saved(*session), weights);
    }
  }
}

TEST_F(SessionSequences, TakeSingleEditsBackAfterAStartWhereNoneStood) {
  const fs::path kept = folder_ / "kept";
  {
    const std::unique_ptr<Session> session = started(kept);
    session->edit(some(0, 1));
    session->undo();
    session->save_edits(kept);
  }
  std::unique_ptr<Session> session = started(kept);
  session->edit(some(1, 2));
  session->edit(some(2, 3));
  session->save_edits(kept);
  session = started(kept);
  session->undo({some(1, 2).front().id});
  EXPECT_EQ(standing_ids(*session), std::vector<std::string>{some(2, 3).front().id});
}

TEST_F(SessionSequences, RecoverWhatAKilledOneLeft) {
  Session session(completed(kMemit), listener_);
  session.edit(some(0, 1));
  const fs::path kept = folder_ / "kept", left = folder_ / cat(".kept.lancet-", ::getpid(), "-9");
  session.save_edits(kept);
  fs::create_directories(left / "edits");  // of a dead process that had this one's id
  write_text_file(left / "edits" / "journal.jsonl", "half");
  const fs::path aside = folder_ / cat(".kept.lancet-old-", ::getpid());
  fs::rename(kept, aside);
  Session::recover_edits(kept);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(aside));
  EXPECT_EQ(started(kept)->edits(), 1);
}

TEST_F(SessionSequences, KeepNothingInFoldersOfTheirOwnWhereNoEditStands) {
  Session session(completed(kMemit), listener_);
  const fs::path kept = folder_ / "kept";
  session.edit(some(0, 1));
  session.save_edits(kept);
  session.undo();
  session.save_edits(kept);
  EXPECT_FALSE(fs::exists(kept / "edits" / "changes"));
  EXPECT_FALSE(fs::exists(kept / "edits" / "solved"));
  session.edit(some(1, 2));
  session.save_edits(kept);
  EXPECT_EQ(started(kept)->edits(), 1);
}

}  // namespace
}  // namespace lancet::testing
