#ifndef APPS_REPORT_FILMS_H_
#define APPS_REPORT_FILMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/report/evaluation_files.h"

namespace mjp::app {

// Puts films into the page, the first asked for first, as long as there is room; the others are
// links from the page's folder.
class FilmShelf {
 public:
  // `room`: bytes of films inside the page. `page` is the file that the page will be.
  FilmShelf(uint64_t room, const std::string& page) : room_(room), page_(page) {}

  // The HTML of a film: a player, or a link where there is no room or browsers do not play it.
  std::string Html(const std::string& file);

  int inside() const { return inside_; }
  int linked() const { return linked_; }

 private:
  uint64_t room_;
  std::string page_;
  int inside_ = 0, linked_ = 0;
};

// The section of all episodes of all evaluations: failures first, the worst before the others, with
// their films.
std::string EpisodesSection(const std::vector<EvaluationFiles>& all, FilmShelf& shelf);

}  // namespace mjp::app

#endif  // APPS_REPORT_FILMS_H_
