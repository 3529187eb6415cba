// An editor around another editor. It forwards everything that a derived class does not override.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lancet/editing/editor.h"

namespace lancet {

class WrappedEditor : public Editor {
 public:
  EditorNeeds needs() const override { return method_->needs(); }
  const ContextOptions* contexts() const override { return method_->contexts(); }
  const ValueOptions* values() const override { return method_->values(); }
  TargetRule target_rule() const override { return method_->target_rule(); }
  std::vector<WeightId> targets(const ModelConfig& config) const override { return method_->targets(config); }
  std::vector<int64_t> value_layers(const ModelConfig& config) const override { return method_->value_layers(config); }
  EditorState make_state() const override { return method_->make_state(); }
  GivenSolution solve_given(const EditContext& context, const GivenSystem& given, EditorState& state) const override {
    return method_->solve_given(context, given, state);
  }
  void finish(const EditContext& context, WeightTransaction& transaction) const override {
    method_->finish(context, transaction);
  }

 protected:
  explicit WrappedEditor(std::unique_ptr<Editor> method) : method_(std::move(method)) {}
  const Editor& method() const { return *method_; }

 private:
  std::unique_ptr<Editor> method_;
};

}  // namespace lancet
