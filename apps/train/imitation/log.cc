#include "apps/train/imitation/log.h"

#include <chrono>
#include <cmath>

#include "base/json.h"
#include "base/text_stream.h"

namespace mjp::app {
namespace {

constexpr char kHeader[] = "step,seconds,loss,validation_loss,learning_rate,steps_per_second";
constexpr char kScoreHeader[] = "step,seconds,episodes,success,reward";

double Now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

TrainingLog::TrainingLog(const std::string& folder, int64_t step)
    : folder_(folder),
      begin_(step),
      json_(folder + "/log.jsonl", step),
      csv_(folder + "/loss.csv", step, kHeader),
      events_(folder + "/tensorboard", Now()) {}

void TrainingLog::Add(const LogLine& line) {
  const bool validated = std::isfinite(line.validation_loss);
  Json json = {{"step", line.step}, {"seconds", line.seconds}, {"loss", line.loss}};
  if (validated) json["validation_loss"] = line.validation_loss;
  json["learning_rate"] = line.learning_rate;
  json["steps_per_second"] = line.steps_per_second;
  json_.Add(json.dump());
  TextWriter csv;
  csv.precision(9);
  csv << line.step << ',' << line.seconds << ',' << line.loss << ',';
  if (validated) csv << line.validation_loss;
  csv << ',' << line.learning_rate << ',' << line.steps_per_second;
  csv_.Add(csv.str());
  const double now = Now();
  events_.Add("loss/train", line.step, line.loss, now);
  if (validated) events_.Add("loss/validation", line.step, line.validation_loss, now);
  events_.Add("learning_rate", line.step, line.learning_rate, now);
  events_.Add("steps_per_second", line.step, line.steps_per_second, now);
}

void TrainingLog::Add(int64_t step, double seconds, const Score& score) {
  if (!scores_) scores_.emplace(folder_ + "/scores.csv", begin_, kScoreHeader);
  TextWriter csv;
  csv.precision(9);
  csv << step << ',' << seconds << ',' << score.episodes << ',' << score.success << ','
      << score.reward;
  scores_->Add(csv.str());
  const double now = Now();
  events_.Add("score/success", step, score.success, now);
  events_.Add("score/reward", step, score.reward, now);
}

}  // namespace mjp::app
