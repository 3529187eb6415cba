// Options of every editor that make its changes smaller.
#pragma once

#include <memory>

#include "lancet/core/config_section.h"
#include "lancet/editing/editor.h"

namespace lancet {

/// Returns the method itself, or, if `editor:` has them, the method with `rect: {keep: SHARE}` and `revive: {energy:
/// SHARE}` (filter every change when it is applied) and `prune: {log_base: B}` (filters the whole change of each
/// weight, after the last batch).
std::unique_ptr<Editor> with_filters(std::unique_ptr<Editor> method, ConfigSection& editor);

// Repairs failed edits of locate-then-edit methods after each batch: `repair:` of memit, alphaedit and nse.

/// Returns the method itself, or, if `editor:` has `repair:`, the method with a training of the weights that it changes
/// after each of its batches. A pass trains on the requests of the batch, and on `revisit` earlier ones, whose target
/// tokens do not lead by `margin` (TrainingOptions). Adam's steps are restricted as the method's own changes are: by M
/// of C (whitening()), for nse too, or by the projector onto the null space. This is lancet's own addition, without a
/// paper.
std::unique_ptr<Editor> with_repair(std::unique_ptr<Editor> method, ConfigSection& editor);

}  // namespace lancet
