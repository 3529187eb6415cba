// A job of one process that ends in the middle, as a kill would end it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lancet/runtime/communicator.h"

namespace lancet::testing {

/// Throws std::runtime_error when a stage of this name begins for the n-th time.
class Interrupted final : public Communicator {
 public:
  Interrupted(std::string stage, int64_t n) : stage_(std::move(stage)), left_(n) {}
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  void sum(Tensor&) override {}
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
  std::string broadcast(std::string bytes) override { return bytes; }
  Tensor broadcast(Tensor tensor, at::Device device) override { return tensor.to(device); }
  void barrier() override {}

 protected:
  void enter(const std::string& stage) override {
    if (stage == stage_ && --left_ == 0) throw std::runtime_error("killed");
  }
  void agree(const std::string&, const Failure*) override {}

 private:
  std::string stage_;
  int64_t left_;
};

}  // namespace lancet::testing
