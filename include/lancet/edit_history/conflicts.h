// Finds edits that conflict, in one history or across several histories of one base.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

enum class ConflictKind {
  kTargets,    ///< same subject and relation, different targets: the later edit supersedes the earlier
  kEqualKeys,  ///< equal tokens up to the subject's last one, different targets: one key cannot have both values
  kNearKeys,   ///< keys with a cosine above ConflictOptions::cosine, different residuals
  kReversed    ///< one edit contradicts the reverse of the other, see ConflictOptions::inverses
};

/// Returns "targets", "equal_keys", "near_keys", "reversed".
std::string name_of(ConflictKind kind);

struct EditPlace {
  /// Indices in the list of histories, in its batches, and in the batch's edits.
  size_t history = 0, batch = 0, edit = 0;
  std::string id = {};

  bool operator==(const EditPlace& other) const {
    return history == other.history && batch == other.batch && edit == other.edit;
  }
};

struct Conflict {
  ConflictKind kind = ConflictKind::kTargets;
  EditPlace first = {}, second = {};  ///< `first` was edited earlier, or belongs to an earlier history
  std::string what = {};              ///< "'Paris' and 'Rome' of 'Louvre' (P276)"
  /// kNearKeys: the largest cosine of all layers; 1 for the other kinds.
  double measure = 1;
};

/// The fact (s, relation, t) implies (t, inverse, s), and a subject has at most one value of `inverse`.
struct InversePair {
  std::string relation = {}, inverse = {};
};

/// Returns pairs of Wikidata: capital (P36) and capital of (P1376), follows and followed by (P155, P156), replaces and
/// replaced by (P1365, P1366), each in both directions; and spouse (P26), which is its own inverse.
std::vector<InversePair> usual_inverses();

struct ConflictOptions {
  double cosine = 0.9;
  /// Residuals r and q are different if |r - q| exceeds this share of the longer one.
  double residual_share = 0.5;
  std::vector<InversePair> inverses = usual_inverses();
  /// Returns L of C = L L^T for the weight's keys, on the host in f64, as in RidgeProblem; undefined: not available.
  /// Cosines are then measured in the metric of C^-1, as the solves see keys. Without it they are plain cosines.
  std::function<Tensor(WeightId id)> factor = {};
};

struct ConflictReport {
  std::vector<Conflict> conflicts = {};
  /// Pairs with the same subject, relation and target. They are no conflicts.
  std::vector<Conflict> duplicates = {};
  /// Weights with keys, and whether their cosines are measured in the metric of C^-1.
  std::vector<std::pair<WeightId, bool>> metrics = {};
};

/// Finds conflicting pairs of edits. Texts are compared with normalised white space (runs become one space, ends are
/// cut):
/// * kTargets: equal subjects, and equal relations if both edits name one, else equal prompts with the subject's place
/// marked. Targets are equal if their texts are equal, if one is among the other's aliases, or if their ids are equal.
/// * kEqualKeys: equal token ids up to and including EditRecord::lookup, and different targets.
/// * kNearKeys: compares, for each weight, the keys and residuals of each edit's first change there (methods that keep
/// systems).
/// * kReversed: (s, r, t) and (t, q, u) with u != s, where q is the inverse of r by ConflictOptions::inverses. Also (s,
/// r, t) and (t, r, s) with s != t: each is the other's target under one relation, which holds only for a symmetric
/// relation. r is compared by its id, or else by the marked prompt. Not reported for a relation that is its own
/// inverse.
/// Each pair is listed once, under the first of these kinds that applies. A duplicate is not listed as a conflict. The
/// list is ordered by the first edit, then by the second. Throws: std::logic_error for histories of more than one base.
ConflictReport find_conflicts(std::span<const EditHistory* const> histories, const ConflictOptions& options);

}  // namespace lancet
