// Work of several askers on one thread: in order, one at a time, and cancelled where it still can be.
#include "lancet/http/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "lancet/core/error.h"

namespace lancet::testing {
namespace {

using namespace std::chrono_literals;

/// Work that runs until it is let go, or interrupted.
class WorkQueues : public ::testing::Test {
 protected:
  WorkQueue::Work held(const std::string& message = "") {
    return [this, message] {
      begun_.set_value();
      while (!is_let_go_) {
        if (is_interrupted_.exchange(false)) throw Cancelled();
        std::this_thread::sleep_for(1ms);
      }
      return message;
    };
  }
  void wait_for_begin() { begun_.get_future().wait(); }
  bool ends() { return queue_.wait_until_idle(60s); }

  std::promise<void> begun_;
  std::atomic<bool> is_let_go_ = false, is_interrupted_ = false;
  std::atomic<int> changes_ = 0;
  WorkQueue queue_{2, {.changed = [this] { ++changes_; }, .interrupt = [this] { is_interrupted_ = true; }}};
};

TEST_F(WorkQueues, WorkIsDoneInOrderOnOneThread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  queue_.add("edit", "first", held());
  wait_for_begin();
  for (const int i : {1, 2})
    queue_.add("edit", "", [&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
      return std::to_string(i);
    });
  EXPECT_EQ(queue_.view().running->what, "first");
  EXPECT_EQ(queue_.view().waiting.size(), 2u);
  is_let_go_ = true;
  ASSERT_TRUE(ends());
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_EQ(threads[0], threads[1]);
  EXPECT_NE(threads[0], std::this_thread::get_id());
  const WorkView view = queue_.view();
  ASSERT_EQ(view.finished.size(), 3u);
  EXPECT_EQ(view.finished[2].message, "2");
  EXPECT_EQ(view.finished[2].item.number, 3);
  EXPECT_FALSE(view.running);
  EXPECT_GE(changes_, 8) << "each came, began, and ended; the last end is told after the wait";
}

TEST_F(WorkQueues, TooMuchIsRefused) {
  queue_.add("edit", "", held());
  wait_for_begin();
  EXPECT_TRUE(queue_.add("ask", "", [] { return ""; }));
  EXPECT_TRUE(queue_.add("ask", "", [] { return ""; }));
  EXPECT_FALSE(queue_.add("ask", "", [] { return ""; }));
  is_let_go_ = true;
  ASSERT_TRUE(ends());
  EXPECT_EQ(queue_.view().finished.size(), 3u);
}

TEST_F(WorkQueues, AFailureIsToldAndTheNextRuns) {
  queue_.add("edit", "", []() -> std::string { throw ConfigError("no such method"); });
  queue_.add("edit", "", [] { return "fine"; });
  ASSERT_TRUE(ends());
  const WorkView view = queue_.view();
  EXPECT_EQ(view.finished[0].outcome, WorkOutcome::kFailed);
  EXPECT_EQ(view.finished[0].message, "no such method");
  EXPECT_EQ(view.finished[1].outcome, WorkOutcome::kDone);
}

TEST_F(WorkQueues, WhatRunsAndWhatWaitsCanBeCancelled) {
  const int64_t running = *queue_.add("edit", "", held());
  wait_for_begin();
  bool was_done = false;
  const int64_t waiting = *queue_.add("ask", "", [&] {
    was_done = true;
    return "";
  });
  EXPECT_FALSE(queue_.cancel(99));
  EXPECT_TRUE(queue_.cancel(waiting));
  EXPECT_FALSE(queue_.cancel(waiting));
  EXPECT_TRUE(queue_.cancel(running));
  ASSERT_TRUE(ends());
  EXPECT_FALSE(queue_.cancel(running));
  EXPECT_FALSE(was_done);
  for (const FinishedWork& finished : queue_.view().finished) EXPECT_EQ(finished.outcome, WorkOutcome::kCancelled);
}

TEST_F(WorkQueues, WorkThatIsWaitedForIsLetGoWhenItIsCancelled) {
  queue_.add("edit", "", held());
  wait_for_begin();
  auto kept = std::make_shared<int>();
  const int64_t waiting = *queue_.add("ask", "", [kept] { return ""; });
  EXPECT_EQ(kept.use_count(), 2);
  queue_.cancel(waiting);
  EXPECT_EQ(kept.use_count(), 1);
  is_let_go_ = true;
}

TEST_F(WorkQueues, WhatCancelsWorkThatIsDoneComesTooLate) {
  std::promise<void> in_last_part, let_go;
  const int64_t item = *queue_.add("edit", "", [&] {
    queue_.begin_last_part();
    in_last_part.set_value();
    let_go.get_future().wait();
    return "done";
  });
  in_last_part.get_future().wait();
  EXPECT_FALSE(queue_.view().is_cancellable);
  EXPECT_FALSE(queue_.cancel(item));
  EXPECT_FALSE(queue_.wants_interruption());
  EXPECT_FALSE(is_interrupted_);
  let_go.set_value();
  ASSERT_TRUE(ends());
  EXPECT_EQ(queue_.view().finished[0].outcome, WorkOutcome::kDone);
}

TEST_F(WorkQueues, AnInterruptionIsWantedUntilTheWorkEnds) {
  const int64_t item = *queue_.add("edit", "", held());
  wait_for_begin();
  EXPECT_FALSE(queue_.wants_interruption());
  queue_.cancel(item);
  ASSERT_TRUE(ends());
  EXPECT_FALSE(queue_.wants_interruption());
}

TEST_F(WorkQueues, AStopEndsAllAndTakesNothingMore) {
  queue_.add("edit", "", held());
  wait_for_begin();
  queue_.add("edit", "", [] { return ""; });
  queue_.stop();
  ASSERT_TRUE(ends());
  EXPECT_FALSE(queue_.add("edit", "", [] { return ""; }));
  ASSERT_EQ(queue_.view().finished.size(), 2u);
  for (const FinishedWork& finished : queue_.view().finished) EXPECT_EQ(finished.outcome, WorkOutcome::kCancelled);
}

}  // namespace
}  // namespace lancet::testing
