// What a job names that rooms above this one have: methods with their options, protocols with their metrics.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lancet/core/config_section.h"

namespace lancet {

class Editor;  // of a room above: a job hands it on without a look inside

/// What a method asks of its job.
struct MethodNeeds {
  bool statistics = false;  ///< the job must have `statistics:`
  bool null_space = false;  ///< they are null spaces
  bool curvature = false;   ///< they are moments of keys and of gradients
  bool values = false;      ///< it optimises values
  bool entities = false;    ///< the moments of other subjects are part of its statistics
};

/// An `editor:` that was read.
struct ReadEditor {
  MethodNeeds needs = {};
  std::shared_ptr<const Editor> editor = {};
};

/// A protocol that `evaluate:` may name.
struct ProtocolNames {
  std::string_view name;
  std::span<const std::string_view> metrics;    ///< names for is_metric_of()
  std::span<const std::string_view> no_shares;  ///< metrics among them that no threshold can be put on
};

struct JobTables {
  /// Reads an `editor:` and finishes it, problems going to the section; nullopt: it names no method.
  std::optional<ReadEditor> (*read_editor)(ConfigSection& editor) = nullptr;
  std::vector<ProtocolNames> protocols = {};

  /// The protocol that measures a metric; null when none does.
  const ProtocolNames* find_protocol_of(std::string_view metric) const;
};

}  // namespace lancet
