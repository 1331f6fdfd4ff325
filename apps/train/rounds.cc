#include "apps/train/rounds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>
#include <thread>

#include "apps/train/data/dataset.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/pusht/environments.h"
#include "tasks/pusht/evaluation/judge.h"
#include "tasks/pusht/evaluation/pusht_task.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/pusht/planner/demonstrations.h"

namespace mjp::app {
namespace {

constexpr uint32_t kFirstSeed = 3000000000;  // of the starts: beyond those of evaluations
// Rounds from here on have starts of their own range: in the first one, their plain starts would be
// the late or the original ones of earlier rounds.
constexpr int kFirstRounds = 50;
constexpr uint32_t kLaterSeed = 4010000000;
constexpr double kEndCoverage = 0.975;  // ends an episode of a round: finish, do not graze
constexpr double kMargin = 64;          // pixels; what is further outside teaches nothing
constexpr size_t kPlansOfAThread = 16;  // made between two looks at whether they are needed

bool IsInside(const State& state) {
  return std::ranges::all_of(
      std::initializer_list<double>{state.agent_x, state.agent_y, state.block_x, state.block_y},
      [](double v) { return v > -kMargin && v < kWorldSize + kMargin; });
}

// What makes a part of the disturbed episodes harder.
struct Hardship {
  double push;          // pixels
  int pushes;           // 0: one every two seconds
  double action_noise;  // pixels
  int often;            // times as many decisions as in plain episodes
};
constexpr int kMostOften = 4;
constexpr Hardship kHardships[] = {
    {20, 0, 2, 2}, {40, 0, 2, kMostOften}, {40, 3, 10, 1}, {30, 4, 5, 2}};
constexpr int kParts = std::size(kHardships);

void Disturb(int round, int part, EvaluationOptions& evaluation, PushtOptions& pusht) {
  const Hardship& hardship = kHardships[part];
  evaluation.action_steps = std::max(1, evaluation.action_steps / hardship.often);
  evaluation.conditions.latency = std::min((round + part) % 3, evaluation.action_steps);
  evaluation.conditions.action_noise = hardship.action_noise;
  pusht.push = hardship.push;
  pusht.pushes = hardship.pushes;
}

// How the late episodes are played. They decide in every step and know what is executed meanwhile;
// a chunk is followed for as long as a decision takes to act.
struct Lateness {
  double replan_beyond, action_noise, push;  // pixels
};
constexpr Lateness kLateness[] = {{100, 0, 0}, {100, 2, 0}, {60, 2, 30}};
constexpr int kLatePushes = 3;  // of an episode that has some
constexpr int kLateParts = std::size(kLateness);

void Delay(int part, EvaluationOptions& evaluation, PushtOptions& pusht) {
  const Lateness& lateness = kLateness[part];
  evaluation.action_steps = 1;
  evaluation.replan_beyond = lateness.replan_beyond;
  evaluation.replan_after = kLateSteps;
  evaluation.conditions.latency = kLateSteps;
  evaluation.conditions.action_noise = lateness.action_noise;
  evaluation.policy.sampler.prefix = true;
  evaluation.policy.sampler.warm_start = 1;
  pusht.push = lateness.push;
  pusht.pushes = kLatePushes;
}

// Points of (n, 2) numbers.
std::vector<Point> Points(std::span<const float> numbers) {
  std::vector<Point> points;
  for (size_t i = 0; i < numbers.size(); i += 2) points.push_back({numbers[i], numbers[i + 1]});
  return points;
}

}  // namespace

// A decision to be labelled.
struct Rounds::Labels {
  State previous, state;
  Point target;
  Plan chunk;                // the student's, from where it acts
  std::vector<Point> ahead;  // executed before that, where the decision is late
  std::vector<Point> known;  // what it knew of them
};

mjp::PolicyOptions PolicyOfRounds(bool cuda, int threads, const mjp::SamplerOptions& sampler) {
  mjp::PolicyOptions policy;
  policy.backend = cuda ? mjp::Backend::kCuda : mjp::Backend::kCpu;
  policy.sampler = sampler;
  policy.sampler.temperature = 1.0f;  // lessons are to be of all that it may do
  policy.scene_drawer = &mjp::FlatSceneDrawer();
  policy.batch = 512;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  policy.threads = std::max(1, threads > 0 ? threads : cores);
  return policy;
}

Rounds::Rounds(const RoundOptions& options, const mjp::PolicyOptions& policy)
    : options_(options), policy_(policy) {
  std::set<int64_t> done;
  if (options_.count > 0) {
    if (options_.original_episodes > 0) CheckPhysics(PhysicsKind::kChipmunk);
    std::filesystem::create_directories(options_.folder);
    if (options_.late_episodes > 0) std::filesystem::create_directories(options_.late_folder);
    LoadNewDemonstrations(options_.folder, done);
  }
  next_ = static_cast<int>(done.size());
}

Rounds::~Rounds() {
  abandoned_ = true;
  if (labelling_.valid()) labelling_.wait();
}

KeptRounds KeptIn(const std::string& folder) {
  std::set<int64_t> rounds;
  const auto rows = static_cast<int64_t>(LoadNewDemonstrations(folder, rounds).size());
  return {static_cast<int>(rounds.size()), rows};
}

int64_t RoundOptions::Capacity(int rounds) const {
  const auto decisions = [](int steps) { return kControlSteps / steps + 1; };
  const int fewest = std::max(1, action_steps / kMostOften);
  return int64_t{rounds} * ((int64_t{episodes} + original_episodes) * decisions(action_steps) +
                            int64_t{disturbed_episodes} * decisions(fewest));
}

int64_t RoundOptions::LateCapacity(int rounds) const {
  return int64_t{rounds} * late_episodes * (kControlSteps + 1);
}

bool Rounds::Due(double progress) {
  WaitFor(0);
  return next_ < options_.count && progress * (options_.count + 1) >= next_ + 1;
}

void Rounds::Wait() {
  if (labelling_.valid()) labelling_.get();
}

bool Rounds::WaitFor(double seconds) {
  if (!labelling_.valid()) return true;
  const std::chrono::duration<double> limit(seconds);
  if (labelling_.wait_for(limit) != std::future_status::ready) return false;
  labelling_.get();
  return true;
}

int Rounds::CountOf(int part) const {
  if (part == kPlain) return options_.episodes;
  if (part == kOriginal) return options_.original_episodes;
  if (part < kParts) return (options_.disturbed_episodes + part) / kParts;
  return (options_.late_episodes + part - kParts) / kLateParts;
}

uint32_t Rounds::SeedOf(int round, int part) const {
  if (round >= kFirstRounds) {
    const uint32_t later = kLaterSeed + static_cast<uint32_t>(options_.seed % 10) * 20000000 +
                           static_cast<uint32_t>(round - kFirstRounds) * 20000;
    if (part == kPlain) return later;
    if (part == kOriginal) return later + 15000;
    if (part < kParts) return later + 5000 + static_cast<uint32_t>(part) * 1100;
    return later + 10000 + static_cast<uint32_t>(part - kParts) * 1400;
  }
  const uint32_t first = kFirstSeed + static_cast<uint32_t>(options_.seed % 1000) * 1000000 +
                         static_cast<uint32_t>(round) * 10000;
  if (part == kPlain) return first;
  if (part == kOriginal) return first + 700000;
  if (part < kParts) return first + 5000 + static_cast<uint32_t>(part) * 1100;
  return first + 500000 + static_cast<uint32_t>(part - kParts) * 1400;
}

Figures Rounds::Episodes(const std::shared_ptr<const mjp::Checkpoint>& student, int round, int part,
                         std::vector<Labels>* labels, const std::atomic<bool>& stop) const {
  EvaluationOptions evaluation;
  evaluation.episodes = CountOf(part);
  if (evaluation.episodes == 0) return {};
  evaluation.seed = SeedOf(round, part);
  evaluation.policy = policy_;
  evaluation.policy.batch = std::clamp(evaluation.episodes / 2, 1, policy_.batch);
  evaluation.action_steps = options_.action_steps;
  PushtOptions pusht;
  const bool late = part >= kParts;
  if (part == kOriginal) pusht.physics = PhysicsKind::kChipmunk;
  if (part >= 0 && !late) Disturb(round, part, evaluation, pusht);
  if (late) Delay(part - kParts, evaluation, pusht);
  if (labels != nullptr) pusht.end_coverage = kEndCoverage;
  evaluation.policy.sampler.hold_noise =
      mjp::ResolveHoldNoise(evaluation.policy.sampler, *student, evaluation.action_steps);
  const PushtTask task(pusht);
  const size_t first = 2 * static_cast<size_t>(student->config.FirstAction());
  const auto remember = [&](const Decision& decision) {
    const State state = FromNumbers(decision.state);
    if (labels == nullptr || !IsInside(state)) return;
    const Point target = {static_cast<float>(decision.action[0]),
                          static_cast<float>(decision.action[1])};
    Labels label = {FromNumbers(decision.previous), state, target, {}, {}, {}};
    if (late) {
      label.ahead = Points(decision.ahead);
      label.known = decision.prefix.empty() ? label.ahead : Points(decision.prefix.subspan(first));
    }
    label.chunk = FollowTargets(Points(decision.chunk.subspan(first + 2 * label.ahead.size())));
    labels->push_back(std::move(label));
  };
  std::map<int, EpisodeResult> episodes;
  mjp::app::Evaluate(
      task, evaluation, mjp::Policy::Create(student, evaluation.policy), ShardIndices(evaluation),
      [&](const EpisodeResult& episode) { episodes[episode.index] = episode; }, stop, remember);
  return Summarise(episodes, task.measures());
}

void Rounds::Play(const std::shared_ptr<const mjp::Checkpoint>& student,
                  const std::function<void(const Figures&)>& keep, const std::atomic<bool>& stop) {
  Wait();
  const int round = next_;
  std::vector<Labels> labels;
  const Figures figures = PlayAll(student, round, labels, stop);
  if (stop) return;
  ++next_;
  keep(figures);
  labelling_ = std::async(std::launch::async, [this, round, labels = std::move(labels), figures] {
    Label(round, labels, figures);
  });
}

Figures Rounds::PlayAll(const std::shared_ptr<const mjp::Checkpoint>& student, int round,
                        std::vector<Labels>& labels, const std::atomic<bool>& stop) const {
  const Figures figures = Episodes(student, round, kPlain, &labels, stop);
  Episodes(student, round, kOriginal, &labels, stop);
  for (int part = 0; part < kParts + kLateParts; ++part) {
    Episodes(student, round, part, &labels, stop);
  }
  return figures;
}

Observed Rounds::Observe(const std::shared_ptr<const mjp::Checkpoint>& student, int round,
                         const std::atomic<bool>& stop) const {
  std::vector<Labels> labels;
  Observed observed;
  observed.figures = PlayAll(student, round, labels, stop);
  if (stop) return {};
  for (const Labels& l : labels)
    observed.rows.push_back(MakeRow(l.previous, l.state, l.target, l.chunk));
  return observed;
}

Figures Rounds::Evaluate(const std::shared_ptr<const mjp::Checkpoint>& student,
                         const std::atomic<bool>& stop) const {
  return Episodes(student, options_.count, kPlain, nullptr, stop);
}

void Rounds::Label(int round, std::vector<Labels> labels, const Figures& figures) const {
  std::vector<PlanRequest> requests;
  requests.reserve(labels.size());
  for (const Labels& l : labels) {
    requests.push_back(
        {Follow(WithVelocity(l.previous, l.state, l.target.x, l.target.y), l.ahead),
         /*has_warm=*/true,
         l.chunk,
         {kFirstSeed + options_.seed, static_cast<uint64_t>(round) << 32 | requests.size()}});
  }
  std::vector<Plan> plans;
  const size_t part = kPlansOfAThread * static_cast<size_t>(policy_.threads);
  while (plans.size() < requests.size()) {
    if (abandoned_) return;
    const std::span rest = std::span<const PlanRequest>(requests).subspan(plans.size());
    const std::vector<Plan> more =
        MakePlans(rest.first(std::min(part, rest.size())), options_.planner, policy_.threads);
    plans.insert(plans.end(), more.begin(), more.end());
  }
  Stream stream, late;
  for (size_t i = 0; i < plans.size(); ++i) {
    const Labels& l = labels[i];
    (l.ahead.empty() ? stream : late)
        .rows.push_back(MakeRow(l.previous, l.state, l.target, plans[i], l.known));
  }
  // first, for a round is known by the others
  if (options_.late_episodes > 0) {
    late.statistics.rows = static_cast<int64_t>(late.rows.size());
    AppendStream(options_.late_folder, round, late);
  }
  stream.statistics = {static_cast<int64_t>(stream.rows.size()), figures.episodes,
                       figures.successes, static_cast<int64_t>(figures.median_success_step)};
  AppendStream(options_.folder, round, stream);
}

}  // namespace mjp::app
