#include "apps/report/sections.h"

#include <algorithm>
#include <cmath>

#include "apps/report/charts.h"
#include "apps/report/html.h"
#include "base/error.h"
#include "tasks/results/compare.h"
#include "tasks/results/statistics.h"
#include "tasks/task_names.h"

namespace mjp::app {
namespace {

std::string Percent(double share, int decimals = 1) { return Fixed(100 * share, decimals) + " %"; }

std::string Coloured(size_t series, const std::string& name) {
  return "<span class=\"dot\" style=\"--c:" + SeriesColour(series) + "\"></span>" + Escaped(name);
}

double Success(const EvaluationFiles& one) {
  return static_cast<double>(one.figures.successes) / std::max(one.figures.episodes, 1);
}

Interval SuccessInterval(const EvaluationFiles& one) {
  return Wilson95(one.figures.successes, one.figures.episodes);
}

std::string Legend(const std::vector<EvaluationFiles>& all) {
  if (all.size() == 1) return "";
  std::string html = "<div class=\"legend\">";
  for (size_t i = 0; i < all.size(); ++i)
    html +=
        "<span style=\"--c:" + SeriesColour(i) + "\"><i></i>" + Escaped(all[i].name) + "</span>";
  return html + "</div>";
}

// The share of episodes that are solved by each control step.
Curve SolvedBy(const EvaluationFiles& one) {
  std::vector<int> steps;
  for (const auto& [index, episode] : one.episodes) {
    if (episode.success()) steps.push_back(episode.success_step);
  }
  std::ranges::sort(steps);
  Curve curve = {one.name, {{0, 0}}};
  const auto count = static_cast<double>(one.episodes.size());
  for (size_t i = 0; i < steps.size(); ++i)
    curve.points.emplace_back(steps[i], static_cast<double>(i + 1) / count);
  return curve;
}

double BestMeasure(const EpisodeResult& episode, const std::string& name) {
  const auto found = std::ranges::find(episode.measures, name, &TaskMeasure::name);
  return episode.valid && found != episode.measures.end() ? found->max : 0;
}

// The share of episodes whose best measure is above each value.
Curve Reaching(const EvaluationFiles& one, const std::string& measure) {
  std::vector<double> best;
  for (const auto& [index, episode] : one.episodes) best.push_back(BestMeasure(episode, measure));
  std::ranges::sort(best);
  Curve curve = {one.name, {{0, 1}}};
  const auto count = static_cast<double>(best.size());
  for (size_t i = 0; i < best.size(); ++i)
    curve.points.emplace_back(best[i], (count - static_cast<double>(i + 1)) / count);
  return curve;
}

std::string SeedsText(const std::vector<uint32_t>& seeds) {
  constexpr size_t kShown = 12;
  std::string text;
  for (size_t i = 0; i < std::min(seeds.size(), kShown); ++i)
    text += (i ? ", " : "") + std::to_string(seeds[i]);
  if (seeds.size() > kShown) text += " and " + std::to_string(seeds.size() - kShown) + " more";
  return text.empty() ? "none" : text;
}

std::vector<EpisodeResult> EpisodesOf(const EvaluationFiles& one) {
  std::vector<EpisodeResult> episodes;
  for (const auto& [index, episode] : one.episodes) episodes.push_back(episode);
  return episodes;
}

std::string OneComparison(const EvaluationFiles& a, const EvaluationFiles& b, size_t series) {
  std::string html = "<h3>" + Coloured(series, b.name) + " against " + Escaped(a.name) + "</h3>";
  Comparison c;
  try {
    c = Compare(EpisodesOf(a), EpisodesOf(b));
  } catch (const Error& error) {
    return html + "<p class=\"note\">Not compared: " + Escaped(error.what()) + "</p>";
  }
  const std::string verdict = c.regression() ? "<span class=\"pill bad\">worse</span>"
                              : c.p_value < 0.05 || c.score_difference.low > 0
                                  ? "<span class=\"pill good\">better</span>"
                                  : "<span class=\"pill soft\">no significant difference</span>";
  html +=
      "<p>" + verdict + "</p>" +
      TableHtml(
          {"On the seeds of both", Escaped(a.name), Escaped(b.name), "Difference", "from", "to"},
          {{"success, %", Fixed(100 * c.success_a, 1), Fixed(100 * c.success_b, 1),
            Fixed(100 * (c.success_b - c.success_a), 1), Fixed(100 * c.success_difference.low, 1),
            Fixed(100 * c.success_difference.high, 1)},
           {"score", Fixed(c.score_a, 4), Fixed(c.score_b, 4), Fixed(c.score_b - c.score_a, 4),
            Fixed(c.score_difference.low, 4), Fixed(c.score_difference.high, 4)}}) +
      TableHtml(
          {"Pairs", "Solved by both", "Lost", "Gained", "Solved by neither", "McNemar p"},
          {{std::to_string(c.pairs), std::to_string(c.both), std::to_string(c.lost),
            std::to_string(c.gained), std::to_string(c.neither), Escaped(Probability(c.p_value))}});
  html += "<details><summary>Seeds that changed, and what sets the runs apart</summary><p>Lost: " +
          SeedsText(c.lost_seeds) + "<br>Gained: " + SeedsText(c.gained_seeds) + "</p><ul>";
  for (const std::string& difference : ComparedRuns(a.run_text, b.run_text))
    html += "<li>" + Escaped(difference) + "</li>";
  return html + "</ul></details>";
}

// A value of run.json in a cell.
std::string Cell(const Json& json, const std::string& key) {
  if (!json.contains(key)) return "";
  const Json& value = json[key];
  if (value.is_number_float() && value.get<double>() == std::round(value.get<double>())) {
    return Fixed(value.get<double>(), 0);
  }
  return Escaped(value.is_string() ? value.get<std::string>() : value.dump());
}

bool IsZero(const Json& value) { return value.is_number() && value.get<double>() == 0; }

}  // namespace

std::string TilesHtml(const std::vector<EvaluationFiles>& all) {
  std::string html = "<div class=\"tiles\" id=\"top\">";
  for (size_t i = 0; i < all.size(); ++i) {
    const EvaluationFiles& one = all[i];
    const Interval interval = SuccessInterval(one);
    html += "<div class=\"tile\" style=\"--c:" + SeriesColour(i) + "\"><div class=\"name\">" +
            Escaped(one.name) + "</div><div class=\"big\">" + Percent(Success(one)) +
            "</div><small>" + std::to_string(one.figures.successes) + " of " +
            std::to_string(one.figures.episodes) + " solved, 95 % interval " +
            Fixed(100 * interval.low, 1) + " to " + Fixed(100 * interval.high, 1) + "</small>";
    if (one.figures.invalid > 0)
      html += "<small class=\"warn\">" + std::to_string(one.figures.invalid) + " invalid</small>";
    if (one.figures.episodes < one.expected)
      html += "<small class=\"warn\">not complete: " + std::to_string(one.expected) +
              " episodes were asked for</small>";
    html += "</div>";
  }
  return html + "</div>";
}

std::string SuccessSection(const std::vector<EvaluationFiles>& all) {
  std::vector<IntervalRow> chart;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> header = {"Evaluation", "Episodes",    "Solved",     "Success",
                                     "from",       "to",          "Mean score", "Median steps",
                                     "Jerk",       "Border jump", "Invalid"};
  for (size_t i = 0; i < all.size(); ++i) {
    const EvaluationFiles& one = all[i];
    const Interval interval = SuccessInterval(one);
    const std::optional<Smoothness>& smooth = one.figures.smoothness;
    chart.push_back({one.name, Success(one), interval.low, interval.high});
    rows.push_back(
        {Coloured(i, one.name), std::to_string(one.figures.episodes),
         std::to_string(one.figures.successes), Percent(Success(one), 2), Percent(interval.low, 2),
         Percent(interval.high, 2), Fixed(one.figures.mean_score, 4),
         one.figures.successes > 0 ? Fixed(one.figures.median_success_step, 0) : "none",
         smooth ? Fixed(smooth->jerk, 2) : "unknown",
         smooth ? Fixed(smooth->border_jump, 2) : "unknown", std::to_string(one.figures.invalid)});
  }
  return SectionHtml("success", "Success",
                     "The dot is the share of solved episodes, the bar its 95 % interval (Wilson). "
                     "The score is the mean over episodes of " +
                         Escaped(ScoreMeaning(all.front().task)) +
                         ". Jerk is the mean third difference of the actions, the border jump the "
                         "mean second difference where a chunk begins, in the policy's unit.",
                     IntervalChart(chart) + TableHtml(header, rows));
}

std::string CurvesSection(const std::vector<EvaluationFiles>& all) {
  std::vector<Curve> solved;
  double last = 1;
  for (const EvaluationFiles& one : all) {
    solved.push_back(SolvedBy(one));
    for (const auto& [index, episode] : one.episodes)
      last = std::max(last, static_cast<double>(episode.steps));
  }
  std::string charts = "<div><h3>Solved by a control step, %</h3>" +
                       CurveChart(solved, {"control step", 0, last, 0}, "Solved, percent") +
                       "</div>";
  for (const std::string& measure : MeasuresOf(all.front().episodes)) {
    std::vector<Curve> reaching;
    for (const EvaluationFiles& one : all) reaching.push_back(Reaching(one, measure));
    charts += "<div><h3>Best " + Escaped(measure) + " above a value, %</h3>" +
              CurveChart(reaching, {"best " + measure, 0, 1, 2}, "Episodes, percent") + "</div>";
  }
  return SectionHtml("curves", "Steps and measures",
                     "First how soon episodes are solved. Then, for each measure of the task, how "
                     "many episodes come how far.",
                     Legend(all) + "<div class=\"pair\">" + charts + "</div>");
}

std::string ComparisonSection(const std::vector<EvaluationFiles>& all) {
  std::string html;
  for (size_t i = 1; i < all.size(); ++i) html += OneComparison(all.front(), all[i], i);
  return SectionHtml("comparison", "Paired comparison",
                     "Episodes of equal seeds start equal, so they are compared one by one. "
                     "Differences have 95 % intervals (bootstrap over the pairs).",
                     html);
}

std::string DisturbanceSection(const std::vector<EvaluationFiles>& all) {
  std::vector<std::string> keys;
  for (const EvaluationFiles& one : all) {
    const Json conditions = one.run.value("conditions", Json::object());
    for (const auto& [key, value] : conditions.items()) {
      const bool known = std::ranges::find(keys, key) != keys.end();
      // what counts as success disturbs nobody
      if (!known && !IsZero(value) && !key.starts_with("success")) keys.push_back(key);
    }
  }
  if (keys.empty()) return "";
  std::vector<std::string> header = {"Evaluation"};
  for (const std::string& key : keys) {
    header.push_back(Escaped(key));
    std::ranges::replace(header.back(), '_', ' ');
  }
  for (const char* figure : {"Success", "from", "to", "Mean score"}) header.emplace_back(figure);
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < all.size(); ++i) {
    const Json conditions = all[i].run.value("conditions", Json::object());
    std::vector<std::string> row = {Coloured(i, all[i].name)};
    for (const std::string& key : keys) row.push_back(Cell(conditions, key));
    const Interval interval = SuccessInterval(all[i]);
    row.insert(row.end(), {Percent(Success(all[i])), Percent(interval.low), Percent(interval.high),
                           Fixed(all[i].figures.mean_score, 4)});
    rows.push_back(row);
  }
  return SectionHtml("disturbances", "Disturbances",
                     "Latency in control steps, picture noise in levels of 255, shifts in pixels, "
                     "the others in the units of the policy.",
                     TableHtml(header, rows));
}

std::string TimeSection(const std::vector<EvaluationFiles>& all,
                        const std::vector<StageTime>& profile) {
  const auto part = [](const std::string& title, size_t colour,
                       const std::vector<StageTime>& stages) {
    std::vector<BarRow> bars;
    std::vector<std::vector<std::string>> rows;
    for (const StageTime& stage : stages) {
      bars.push_back({stage.name, stage.median, stage.p99, Fixed(stage.median, 3) + " ms"});
      rows.push_back({Escaped(stage.name), std::to_string(stage.n), Fixed(stage.median, 4),
                      Fixed(stage.p99, 4)});
    }
    return "<h3>" + title + "</h3>" + BarChart(bars, colour, "Time of each stage") +
           "<details><summary>As a table</summary>" +
           TableHtml({"Stage", "Count", "Median, ms", "p99, ms"}, rows) + "</details>";
  };
  std::string html;
  if (!profile.empty()) html = part("From the profile", 0, profile);
  for (size_t i = 0; profile.empty() && i < all.size(); ++i) {
    if (!all[i].stages.empty()) html += part(Coloured(i, all[i].name), i, all[i].stages);
  }
  if (html.empty()) return "";
  return SectionHtml(
      "time", "Where the time of a decision goes",
      std::string("The bar is the median, the tick the 99th percentile.") +
          (profile.empty()
               ? " A decision here serves a whole batch of episodes; <code>mjpolicy profile "
                 "--trace FILE</code> and <code>report --profile FILE</code> show a single robot's."
               : ""),
      html);
}

std::string CertificateSection(const std::vector<EvaluationFiles>& all) {
  std::string html;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].certificate) continue;
    std::vector<std::vector<std::string>> rows;
    for (const auto& [key, value] : all[i].certificate->items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      rows.push_back(
          {Escaped(key), "<span class=\"soft\">" + Escaped(text.substr(0, 400)) + "</span>"});
    }
    html += "<h3>" + Coloured(i, all[i].name) + "</h3>" + TableHtml({"Statement", "Value"}, rows);
  }
  return html.empty()
             ? ""
             : SectionHtml("certificate", "Certificate", "As it stands in certificate.json.", html);
}

std::string RunSection(const std::vector<EvaluationFiles>& all) {
  std::vector<std::string> header = {"Setting"};
  for (size_t i = 0; i < all.size(); ++i) header.push_back(Coloured(i, all[i].name));
  std::vector<std::vector<std::string>> rows;
  for (const char* key : {"version", "mujoco", "backend", "isa", "sampler", "steps", "temperature",
                          "action_steps", "replan_beyond", "hold_noise", "max_steps", "seed",
                          "renderer", "physics", "checkpoint_sha256"}) {
    std::vector<std::string> row = {std::string(key)};
    std::ranges::replace(row.back(), '_', ' ');
    for (const EvaluationFiles& one : all) row.push_back(Cell(one.run, key).substr(0, 64));
    if (std::ranges::any_of(row.begin() + 1, row.end(),
                            [](const auto& cell) { return !cell.empty(); }))
      rows.push_back(row);
  }
  std::string table = TableHtml(header, rows);
  table.replace(table.find("<table>"), 7, "<table class=\"text\">");
  return SectionHtml("run", "What was run", "", table);
}

}  // namespace mjp::app
