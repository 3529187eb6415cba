// Any method with its changes made milder: options that every editor has.
#pragma once

#include <memory>

#include "lancet/core/config_section.h"
#include "lancet/editing/editor.h"

namespace lancet {

/// The method itself, or with `rect: {keep: SHARE}` (every change, as it is applied) and `prune: {log_base: B}` (the
/// whole change of each weight, after the last batch) where `editor:` has them.
std::unique_ptr<Editor> with_filters(std::unique_ptr<Editor> method, ConfigSection& editor);

// Locate-then-edit methods with what did not hold brought back after each batch: `repair:` of memit, alphaedit and nse.

/// The method itself, or where `editor:` has `repair:` with a training of the weights that it changes, after each of
/// its batches: requests of the batch, and `revisit` earlier ones a pass, whose target tokens do not lead by `margin`
/// (TrainingOptions). Adam's steps go through what the method's own changes keep to: M of C (whitening()), for nse too,
/// or the projector onto the null space. Ours: no paper has it.
std::unique_ptr<Editor> with_repair(std::unique_ptr<Editor> method, ConfigSection& editor);

}  // namespace lancet
