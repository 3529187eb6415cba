#include "lancet/runtime/rank_links.h"

#include <semaphore>
#include <stdexcept>
#include <thread>

#include "lancet/core/strings.h"

namespace lancet {

struct RankLinks::Link {
  std::binary_semaphore is_free{1};
  std::atomic<std::thread::id> talker = {};
  bool owes_answer = false;
  bool is_over = false;
};

RankLinks::RankLinks(Communicator& ranks) : ranks_(ranks) {
  for (int64_t rank = 0; rank < ranks.size(); ++rank) links_.push_back(std::make_unique<Link>());
}

RankLinks::~RankLinks() = default;

std::vector<int64_t> RankLinks::others() const {
  std::vector<int64_t> others;
  for (int64_t rank = 1; rank < ranks_.size(); ++rank) others.push_back(rank);
  return others;
}

RankLinks::Talk::Talk(RankLinks& links, int64_t rank)
    : links_(links), rank_(rank), link_(links.links_.at(static_cast<size_t>(rank)).get()) {
  if (link_->talker == std::this_thread::get_id())
    throw std::logic_error(cat("rank ", rank, " is asked in the middle of another question"));
  link_->is_free.acquire();
  link_->talker = std::this_thread::get_id();
}

RankLinks::Talk::~Talk() {
  if (link_ == nullptr) return;
  link_->talker = std::thread::id();
  link_->is_free.release();
}

/// A connection that failed once is not used again.
template <typename Exchange>
auto RankLinks::Talk::exchanged(Exchange exchange) {
  Link& link = *link_;
  if (link.is_over) throw CollectiveError(cat("rank ", rank_, " has failed"));
  try {
    return exchange(link);
  } catch (...) {
    link.is_over = true;
    throw;
  }
}

void RankLinks::Talk::ask(const RankMessage& message) {
  exchanged([&](Link& link) {
    links_.ranks_.send(rank_, message);
    link.owes_answer = true;
  });
}

void RankLinks::Talk::tell(const RankMessage& message) {
  exchanged([&](Link&) { links_.ranks_.send(rank_, message); });
}

RankMessage RankLinks::Talk::receive() {
  return exchanged([&](Link& link) {
    RankMessage message = links_.ranks_.receive(rank_);
    link.owes_answer = false;
    if (message.kind != kFailed) return message;
    links_.has_failed_ = true;
    throw CollectiveError(cat("rank ", rank_, " has failed"));
  });
}

bool RankLinks::Talk::is_over() const { return link_->is_over; }

void RankLinks::end(const RankMessage& farewell) {
  for (const int64_t rank : others()) {
    Talk talk(*this, rank);
    Link& link = *links_[static_cast<size_t>(rank)];
    if (link.is_over) continue;
    try {
      if (link.owes_answer) talk.receive();
      talk.tell(farewell);
    } catch (const CollectiveError&) {
      // the rank is gone, which the caller is about to notice
    }
    link.is_over = true;
  }
}

}  // namespace lancet
