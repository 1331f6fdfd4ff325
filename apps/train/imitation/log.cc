#include "apps/train/imitation/log.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "base/text_stream.h"

namespace mjp::app {
namespace {

constexpr size_t kLargestLog = size_t{1} << 30;
constexpr char kHeader[] = "step,seconds,loss,validation_loss,learning_rate,steps_per_second\n";
constexpr char kScoreHeader[] = "step,seconds,episodes,success,reward\n";

double Now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Opens a log at its end, without its lines after `step`: `step_of` tells the step of a line, or -1
// of a line that stays.
template <class StepOf>
std::ofstream OpenLog(const std::string& path, int64_t step, const std::string& header,
                      const StepOf& step_of) {
  std::string kept;
  if (std::filesystem::exists(path)) {
    std::istringstream lines(ReadFile(path, kLargestLog));
    for (std::string line; std::getline(lines, line);) {
      if (step_of(line) <= step) kept += line + "\n";
    }
  }
  if (kept.empty()) kept = header;
  WriteFileAtomically(path, kept);
  std::ofstream file(path, std::ios::app);
  if (!file) throw BadInput(path + ": cannot be written");
  return file;
}

int64_t StepOfCsv(const std::string& line) { return std::atoll(line.c_str()); }

int64_t StepOfJson(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json.value("step", int64_t{0}) : int64_t{-1};
}

}  // namespace

TrainingLog::TrainingLog(const std::string& folder, int64_t step)
    : folder_(folder),
      begin_(step),
      json_(OpenLog(folder + "/log.jsonl", step, "", StepOfJson)),
      csv_(OpenLog(folder + "/loss.csv", step, kHeader, StepOfCsv)),
      events_(folder + "/tensorboard", Now()) {}

void TrainingLog::Add(const LogLine& line) {
  const bool validated = std::isfinite(line.validation_loss);
  Json json = {{"step", line.step}, {"seconds", line.seconds}, {"loss", line.loss}};
  if (validated) json["validation_loss"] = line.validation_loss;
  json["learning_rate"] = line.learning_rate;
  json["steps_per_second"] = line.steps_per_second;
  json_ << json.dump() << std::endl;
  TextWriter csv;
  csv.precision(9);
  csv << line.step << ',' << line.seconds << ',' << line.loss << ',';
  if (validated) csv << line.validation_loss;
  csv << ',' << line.learning_rate << ',' << line.steps_per_second;
  csv_ << csv.str() << std::endl;
  const double now = Now();
  events_.Add("loss/train", line.step, line.loss, now);
  if (validated) events_.Add("loss/validation", line.step, line.validation_loss, now);
  events_.Add("learning_rate", line.step, line.learning_rate, now);
  events_.Add("steps_per_second", line.step, line.steps_per_second, now);
}

void TrainingLog::Add(int64_t step, double seconds, const Score& score) {
  if (!scores_.is_open()) {
    scores_ = OpenLog(folder_ + "/scores.csv", begin_, kScoreHeader, StepOfCsv);
  }
  TextWriter csv;
  csv.precision(9);
  csv << step << ',' << seconds << ',' << score.episodes << ',' << score.success << ','
      << score.reward;
  scores_ << csv.str() << std::endl;
  const double now = Now();
  events_.Add("score/success", step, score.success, now);
  events_.Add("score/reward", step, score.reward, now);
}

}  // namespace mjp::app
