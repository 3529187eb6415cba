// Edits that are at odds with each other: among the edits of several histories of one base, or of one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

enum class ConflictKind {
  kTargets,    ///< one subject and relation, other targets: the later one supersedes the earlier
  kEqualKeys,  ///< equal tokens up to the subject's last one, and other targets: one key cannot have both values
  kNearKeys,   ///< keys of a cosine above ConflictOptions::cosine, and other residuals
  kReversed    ///< one says what the other's reverse denies, see ConflictOptions::inverses
};

/// "targets", "equal_keys", "near_keys", "reversed".
std::string name_of(ConflictKind kind);

struct EditPlace {
  size_t history = 0, batch = 0, edit = 0;  ///< indices in the list of histories, its batches, the batch's edits
  std::string id = {};

  bool operator==(const EditPlace& other) const {
    return history == other.history && batch == other.batch && edit == other.edit;
  }
};

struct Conflict {
  ConflictKind kind = ConflictKind::kTargets;
  EditPlace first = {}, second = {};  ///< `first` was edited earlier, or is of an earlier history
  std::string what = {};              ///< "'Paris' and 'Rome' of 'Louvre' (P276)"
  /// kNearKeys: the cosine, the largest of all layers; of the other kinds 1.
  double measure = 1;
};

/// (s, relation, t) implies (t, inverse, s), and a subject has one value of `inverse` at most.
struct InversePair {
  std::string relation = {}, inverse = {};
};

/// Wikidata's: capital (P36) and capital of (P1376), follows and followed by (P155, P156), replaces and replaced by
/// (P1365, P1366), each both ways; spouse (P26), its own inverse.
std::vector<InversePair> usual_inverses();

struct ConflictOptions {
  double cosine = 0.9;
  /// Residuals r and q are others when |r - q| is more than this share of the longer one.
  double residual_share = 0.5;
  std::vector<InversePair> inverses = usual_inverses();
  /// L of C = L L^T of the weight's keys, on the host in f64, as RidgeProblem's; undefined: not at hand. Cosines are
  /// in the metric of C^-1, in which the solves see keys, and plain ones without it.
  std::function<Tensor(WeightId id)> factor = {};
};

struct ConflictReport {
  std::vector<Conflict> conflicts = {};
  /// One subject, relation and target: pairs that are no conflict.
  std::vector<Conflict> duplicates = {};
  /// Weights with keys, and whether their cosines are in the metric of C^-1.
  std::vector<std::pair<WeightId, bool>> metrics = {};
};

/// Pairs of edits. What two edits are compared by, white space normalised (runs become one space, ends are cut):
/// * kTargets: equal subjects, and equal relations where both name one, or equal prompts with the subject's place
/// marked;
///   targets are equal when their texts are, when one is among the other's aliases, or their ids are.
/// * kEqualKeys: equal token ids up to and with EditRecord::lookup, and other targets.
/// * kNearKeys: of each weight the keys and residuals of each edit's first change there (methods that keep systems).
/// * kReversed: of (s, r, t) and (t, q, u) with u != s: q is the inverse of r by ConflictOptions::inverses. And
///   (s, r, t) with (t, r, s), s != t: under one relation each is the other's target, which both hold only where the
///   relation is symmetric; r by its id, or else by the marked prompt. Not for a relation that is its own inverse.
/// A pair is listed once, under the first of these kinds; a duplicate is listed under none. In the order of the first,
/// then of the second edit. Throws: std::logic_error for histories of more than one base.
ConflictReport find_conflicts(std::span<const EditHistory* const> histories, const ConflictOptions& options);

}  // namespace lancet
