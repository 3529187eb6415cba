// A store to which anybody may connect, but in which only those who know the job's secret can write values: each value
// has a tag, computed from its key and its bytes. Counters have no tag. Somebody who changes them can end a job, but
// nothing else.
#pragma once

#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/message_tag.h"

namespace lancet {

/// A value in the store that no rank of this job wrote.
class ForeignValue final : public CollectiveError {
 public:
  using CollectiveError::CollectiveError;
};

class SealedStore final : public c10d::Store {
 public:
  using Bytes = std::vector<uint8_t>;
  using Keys = std::vector<std::string>;

  SealedStore(c10::intrusive_ptr<c10d::Store> store, const TagKey& key) : store_(std::move(store)), key_(key) {}

  c10::intrusive_ptr<c10d::Store> clone() override;
  using Store::set;
  void set(const std::string& key, const Bytes& value) override;
  using Store::compareSet;
  /// Throws: ForeignValue, like get() and multiGet().
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override;
  Bytes get(const std::string& key) override;
  std::vector<Bytes> multiGet(const Keys& keys) override;
  int64_t add(const std::string& key, int64_t value) override { return store_->add(key, value); }
  bool deleteKey(const std::string& key) override { return store_->deleteKey(key); }
  bool check(const Keys& keys) override { return store_->check(keys); }
  int64_t getNumKeys() override { return store_->getNumKeys(); }
  void wait(const Keys& keys) override { store_->wait(keys); }
  void wait(const Keys& keys, const std::chrono::milliseconds& timeout) override { store_->wait(keys, timeout); }
  const std::chrono::milliseconds& getTimeout() const noexcept override { return store_->getTimeout(); }
  void setTimeout(const std::chrono::milliseconds& timeout) override { store_->setTimeout(timeout); }
  /// Appended values cannot have a tag.
  bool hasExtendedApi() const override { return false; }

 private:
  Bytes sealed(const std::string& key, const Bytes& value) const;
  Bytes opened(const std::string& key, Bytes value) const;
  uint64_t tag(const std::string& key, const Bytes& value, size_t length) const;

  c10::intrusive_ptr<c10d::Store> store_;
  TagKey key_;
};

}  // namespace lancet
