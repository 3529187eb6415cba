#include "lancet/pipeline/kept_work.h"

#include <vector>

#include "lancet/core/strings.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/statistics/partial_sums.h"

namespace lancet {

KeptWork::KeptWork(const JobConfig& job)
    : unfinished_(job.output ? unfinished_folder(job.output->dir) : std::filesystem::path()),
      cache_(job.statistics ? job.statistics->cache : std::filesystem::path()) {}

std::string KeptWork::text() const {
  std::vector<std::string> places;
  std::error_code ignored;
  if (!unfinished_.empty() && std::filesystem::exists(unfinished_, ignored)) places.push_back(unfinished_.string());
  if (!cache_.empty() && PartialSums::are_saved_since(cache_, begun_))
    places.push_back(cat("the sums of statistics in ", cache_.string()));
  if (places.empty()) return "nothing was finished that could be kept: the same command begins anew";
  return cat("what was finished is kept (", join(places), "), and the same command goes on from there");
}

}  // namespace lancet
