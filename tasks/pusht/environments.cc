#include "tasks/pusht/environments.h"

#include <vector>

#include "base/error.h"
#ifdef MJPOLICY_HAVE_CHIPMUNK
#include "tasks/pusht/physics/chipmunk_oracle.h"
#endif

namespace mjp::app {
namespace {

class MujocoEnvironments : public Environments {
 public:
  MujocoEnvironments(const mjModel* model, int count, int threads)
      : physics_(model, count, threads) {}
  void Start(int i, const State& start) override { physics_.Reset(i, start); }
  void Step(std::span<const int> ids, std::span<const Target> targets) override {
    physics_.Step(ids, targets);
  }
  State Read(int i) const override { return physics_.Read(i); }
  void ReadQpos(int i, mjtNum* qpos) const override { physics_.ReadQpos(i, qpos); }
  void Push(int i, double dx, double dy) override { physics_.Push(i, dx, dy); }
  std::string Failure(int i) const override { return physics_.Failure(i); }

 private:
  BatchPhysics physics_;
};

#ifdef MJPOLICY_HAVE_CHIPMUNK
class ChipmunkEnvironments : public Environments {
 public:
  ChipmunkEnvironments(const mjModel* model, int count) : scene_(model), worlds_(count) {}
  void Start(int i, const State& start) override { worlds_[i].Reset(start); }
  void Step(std::span<const int> ids, std::span<const Target> targets) override {
    for (size_t k = 0; k < ids.size(); ++k) worlds_[ids[k]].Step(targets[k].x, targets[k].y);
  }
  State Read(int i) const override { return worlds_[i].Read(); }
  void ReadQpos(int i, mjtNum* qpos) const override { scene_.ToQpos(Read(i), qpos); }
  void Push(int i, double dx, double dy) override { worlds_[i].Push(dx, dy); }
  std::string Failure(int) const override { return ""; }

 private:
  Scene scene_;
  std::vector<ChipmunkOracle> worlds_;
};
#endif

}  // namespace

void CheckPhysics([[maybe_unused]] PhysicsKind kind) {
#ifndef MJPOLICY_HAVE_CHIPMUNK
  if (kind == PhysicsKind::kMujoco) return;
  throw mjp::EnvironmentError(
      "physics chipmunk: this program was built without the original engine; install "
      "libchipmunk-dev and build again");
#endif
}

std::unique_ptr<Environments> MakeEnvironments(PhysicsKind kind, const mjModel* model, int count,
                                               int threads) {
  CheckPhysics(kind);
#ifdef MJPOLICY_HAVE_CHIPMUNK
  if (kind == PhysicsKind::kChipmunk) return std::make_unique<ChipmunkEnvironments>(model, count);
#endif
  return std::make_unique<MujocoEnvironments>(model, count, threads);
}

}  // namespace mjp::app
