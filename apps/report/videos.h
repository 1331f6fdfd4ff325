#ifndef APPS_REPORT_VIDEOS_H_
#define APPS_REPORT_VIDEOS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/report/evaluation_files.h"

namespace mjp::app {

// Puts videos into the page, the first asked for first, as long as there is room; the others are
// links from the page's folder.
class VideoShelf {
 public:
  // `room`: bytes of videos inside the page. `page` is the file that the page will be.
  VideoShelf(uint64_t room, const std::string& page) : room_(room), page_(page) {}

  // The HTML of a video: a player, or a link where there is no room or browsers do not play it.
  std::string Html(const std::string& file);

  int inside() const { return inside_; }
  int linked() const { return linked_; }

 private:
  uint64_t room_;
  std::string page_;
  int inside_ = 0, linked_ = 0;
};

// The section of all episodes of all evaluations: failures first, the worst before the others, with
// their videos.
std::string EpisodesSection(const std::vector<EvaluationFiles>& all, VideoShelf& shelf);

}  // namespace mjp::app

#endif  // APPS_REPORT_VIDEOS_H_
