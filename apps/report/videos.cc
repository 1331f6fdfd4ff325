#include "apps/report/videos.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "apps/report/charts.h"
#include "apps/report/html.h"
#include "base/file.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostCards = 200;  // with a video
constexpr size_t kMostRows = 400;   // of the table beneath

struct Entry {
  const EvaluationFiles* evaluation = nullptr;
  size_t series = 0;
  const EpisodeResult* episode = nullptr;
};

// Failures first: those that are invalid, then by score; successes by the steps they took.
std::vector<Entry> Ordered(const std::vector<EvaluationFiles>& all) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < all.size(); ++i) {
    for (const auto& [index, episode] : all[i].episodes) entries.push_back({&all[i], i, &episode});
  }
  const auto key = [](const Entry& entry) {
    const EpisodeResult& e = *entry.episode;
    return std::tuple(e.success(), e.valid, e.success() ? -e.success_step : 0, e.max_reward,
                      e.seed);
  };
  std::ranges::stable_sort(entries,
                           [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  return entries;
}

std::string Outcome(const EpisodeResult& e) {
  if (!e.valid) return "<span class=\"warn\">invalid</span>";
  if (e.success())
    return "<span class=\"good\">solved in " + std::to_string(e.success_step) + " steps</span>";
  return "<span class=\"bad\">failed</span>";
}

std::string CardHtml(const Entry& entry, const std::string& video) {
  const EpisodeResult& e = *entry.episode;
  return "<article class=\"video\" data-in=\"all " +
         std::string(e.success() ? "solved" : "failed") + " series" + std::to_string(entry.series) +
         "\" style=\"--c:" + SeriesColour(entry.series) + "\">" + video +
         "<div class=\"what\"><b>seed " + std::to_string(e.seed) + "</b> " + Outcome(e) +
         "<br><span class=\"soft\">" + Escaped(entry.evaluation->name) + ", score " +
         Fixed(e.max_reward, 3) + (e.valid ? "" : ", " + Escaped(e.reason)) +
         "</span></div></article>";
}

std::string Button(const std::string& show, const std::string& text, bool pressed) {
  return "<button type=\"button\" data-show=\"" + show + "\" aria-pressed=\"" +
         (pressed ? "true" : "false") + "\">" + Escaped(text) + "</button>";
}

std::string EpisodeTable(const std::vector<Entry>& entries) {
  std::vector<std::vector<std::string>> rows;
  for (const Entry& entry : entries) {
    if (rows.size() == kMostRows) break;
    const EpisodeResult& e = *entry.episode;
    rows.push_back({Escaped(entry.evaluation->name), std::to_string(e.seed), Outcome(e),
                    Fixed(e.max_reward, 3), std::to_string(e.steps), std::to_string(e.decisions)});
  }
  const std::string more = entries.size() > rows.size()
                               ? " The first " + std::to_string(rows.size()) + " of " +
                                     std::to_string(entries.size()) + "."
                               : "";
  return "<details id=\"episode-table\"><summary>Every episode as a row</summary><p "
         "class=\"note\">Failures first." +
         more + "</p>" +
         TableHtml({"Evaluation", "Seed", "Outcome", "Score", "Steps", "Decisions"}, rows) +
         "</details>";
}

}  // namespace

std::string VideoShelf::Html(const std::string& file) {
  std::error_code none;
  const uint64_t size = fs::file_size(file, none);
  if (!none && size <= room_ && file.ends_with(".mp4")) {
    room_ -= size;
    ++inside_;
    return "<video controls muted playsinline preload=\"metadata\" src=\"data:video/mp4;base64," +
           Base64(mjp::ReadFile(file, size)) + "\"></video>";
  }
  ++linked_;
  const fs::path link = fs::proximate(fs::absolute(file), fs::absolute(page_).parent_path(), none);
  return "<div class=\"link\"><a href=\"" + Escaped(link.generic_string()) + "\">" +
         Escaped(fs::path(file).filename().string()) + "</a></div>";
}

std::string EpisodesSection(const std::vector<EvaluationFiles>& all, VideoShelf& shelf) {
  const std::vector<Entry> entries = Ordered(all);
  std::string cards;
  size_t shown = 0, failures = 0, filmed_failures = 0;
  for (const Entry& entry : entries) {
    failures += !entry.episode->success();
    const auto video = entry.evaluation->videos.find(entry.episode->index);
    if (video == entry.evaluation->videos.end() || shown == kMostCards) continue;
    ++shown;
    filmed_failures += !entry.episode->success();
    cards += CardHtml(entry, shelf.Html(video->second));
  }
  std::string note = std::to_string(failures) + " of " + std::to_string(entries.size()) +
                     " episodes failed; " + std::to_string(filmed_failures) +
                     " of these have a video.";
  if (shelf.linked() > 0)
    note += " " + std::to_string(shelf.linked()) + " videos are links to their files.";
  std::string filters = "<div class=\"filters\" data-cards=\".video\">" +
                        Button("all", "All videos", true) + Button("failed", "Failures", false) +
                        Button("solved", "Solved", false);
  for (size_t i = 0; all.size() > 1 && i < all.size(); ++i)
    filters += Button("series" + std::to_string(i), all[i].name, false);
  filters += "</div>";
  if (shown == 0) {
    filters.clear();
    cards =
        "<p class=\"note\">No videos: <code>mjpolicy evaluate --videos N</code> makes them of the "
        "first N episodes.</p>";
  } else {
    cards = "<div class=\"videos\">" + cards + "</div>";
  }
  return SectionHtml("episodes", "Episodes, failures first", note,
                     filters + cards + EpisodeTable(entries));
}

}  // namespace mjp::app
