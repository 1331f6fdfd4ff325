#include "tasks/aloha/mishap.h"

#include <cmath>

#include "tasks/aloha/drift.h"
#include "tasks/physics/random_stream.h"

namespace mjp::app {
namespace {

constexpr size_t kRightHand = 13;  // in an action

void Hit(RandomStream& random, TransferCube& simulation) {
  const int body = simulation.model()->geom_bodyid[simulation.scene().cube];
  mjtNum* velocity = simulation.data()->qvel + simulation.model()->body_dofadr[body];
  const double direction = random.Uniform(0, 6.2831853f), speed = random.Uniform(0.1f, 0.6f);
  velocity[0] = speed * std::cos(direction);
  velocity[1] = speed * std::sin(direction);
  velocity[5] = random.Uniform(-8, 8);
}

}  // namespace

const char* NameOf(Mishap mishap) {
  constexpr const char* kNames[kMishaps] = {"noise", "drop", "push", "miss"};
  return kNames[static_cast<int>(mishap)];
}

bool PlayMishap(Mishap mishap, uint32_t seed, TransferCube& simulation, TransferExpert& expert) {
  RandomStream random(seed, 1);
  simulation.Start(seed);
  expert.Begin(DrawStyle(seed));
  Drift drift(0.05, 0.3);
  JointAngles offset;
  for (mjtNum& angle : offset) angle = random.Uniform(-0.08f, 0.08f);
  int begin = 0, end = 0;  // of the mishap, control steps
  switch (mishap) {
    case Mishap::kNoise:
      end = 20 + random.Below(230);
      break;
    case Mishap::kDrop:
      begin = 105 + random.Below(80);
      end = begin + 20;
      break;
    case Mishap::kPush:
      begin = 10 + random.Below(60);
      end = begin + 10;
      break;
    case Mishap::kMiss:
      begin = 30;
      end = 100;
      break;
  }
  for (int t = 0; t < end; ++t) {
    AlohaNumbers action = expert.Act(simulation.data());
    if (mishap == Mishap::kNoise) drift.Add(random, action);
    if (mishap == Mishap::kDrop && t >= begin) action[kRightHand] = 1;
    if (mishap == Mishap::kPush && t == begin) Hit(random, simulation);
    if (mishap == Mishap::kMiss && t >= begin) {
      for (int i = 0; i < kArmJoints; ++i) action[7 + i] += offset[i];
    }
    if (simulation.Step(action) == TransferCube::kRewards) return false;
  }
  return true;
}

}  // namespace mjp::app
