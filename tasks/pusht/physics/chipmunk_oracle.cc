#include "tasks/pusht/physics/chipmunk_oracle.h"

#include <chipmunk/chipmunk.h>

#include <array>
#include <vector>

namespace mjp::app {
namespace {

struct SpaceDeleter {
  void operator()(cpSpace* space) const { cpSpaceFree(space); }
};
struct BodyDeleter {
  void operator()(cpBody* body) const { cpBodyFree(body); }
};
struct ShapeDeleter {
  void operator()(cpShape* shape) const { cpShapeFree(shape); }
};

constexpr double kStiffness = 100, kDamping = 20;  // of the agent's servo, 1/s^2 and 1/s
constexpr double kBlockMoment = 3000;  // with the benchmark's own mistake: the bar twice
constexpr double kWallNear = 5, kWallFar = 506, kWallRadius = 2;

}  // namespace

// A fresh space for each episode: Chipmunk remembers contacts.
class ChipmunkOracle::World {
 public:
  explicit World(const State& start) {
    space_.reset(cpSpaceNew());
    cpSpaceSetDamping(space_.get(), 0);  // the block forgets its velocity at every step
    AddWalls();
    // first where the benchmark puts them: the order of contacts depends on it
    AddAgent(cpv(256, 400));
    AddBlock(cpv(256, 300));
    cpBodySetPosition(agent_.get(), cpv(start.agent_x, start.agent_y));
    cpBodySetAngle(block_.get(), start.block_angle);
    cpBodySetPosition(block_.get(), cpv(start.block_x, start.block_y));
    cpSpaceStep(space_.get(), kTimestep);
  }

  ~World() {
    for (const auto& shape : shapes_) cpSpaceRemoveShape(space_.get(), shape.get());
    cpSpaceRemoveBody(space_.get(), agent_.get());
    cpSpaceRemoveBody(space_.get(), block_.get());
  }

  void Step(cpVect target) {
    for (int i = 0; i < kSubsteps; ++i) {
      const cpVect velocity = cpBodyGetVelocity(agent_.get());
      const cpVect offset = cpvsub(target, cpBodyGetPosition(agent_.get()));
      const cpVect acceleration =
          cpvadd(cpvmult(offset, kStiffness), cpvmult(cpvneg(velocity), kDamping));
      cpBodySetVelocity(agent_.get(), cpvadd(velocity, cpvmult(acceleration, kTimestep)));
      cpSpaceStep(space_.get(), kTimestep);
    }
  }

  void Push(cpVect by) {
    cpBodySetPosition(block_.get(), cpvadd(cpBodyGetPosition(block_.get()), by));
  }

  State Read() const {
    const cpVect agent = cpBodyGetPosition(agent_.get());
    const cpVect block = cpBodyGetPosition(block_.get());
    return {agent.x, agent.y, block.x, block.y, cpBodyGetAngle(block_.get())};
  }

 private:
  void AddShape(cpShape* shape) { shapes_.emplace_back(cpSpaceAddShape(space_.get(), shape)); }

  void AddWalls() {
    const std::array<cpVect, 5> corners = {cpv(kWallNear, kWallFar), cpv(kWallNear, kWallNear),
                                           cpv(kWallFar, kWallNear), cpv(kWallFar, kWallFar),
                                           cpv(kWallNear, kWallFar)};
    cpBody* ground = cpSpaceGetStaticBody(space_.get());
    for (size_t i = 0; i + 1 < corners.size(); ++i) {
      AddShape(cpSegmentShapeNew(ground, corners[i], corners[i + 1], kWallRadius));
    }
  }

  void AddAgent(cpVect position) {
    agent_.reset(cpSpaceAddBody(space_.get(), cpBodyNewKinematic()));
    cpBodySetPosition(agent_.get(), position);
    AddShape(cpCircleShapeNew(agent_.get(), kAgentRadius, cpvzero));
  }

  void AddBlock(cpVect origin) {
    const std::array<cpVect, 4> bar = {cpv(-60, 30), cpv(60, 30), cpv(60, 0), cpv(-60, 0)};
    const std::array<cpVect, 4> stem = {cpv(-15, 30), cpv(-15, 120), cpv(15, 120), cpv(15, 30)};
    block_.reset(cpSpaceAddBody(space_.get(), cpBodyNew(1, kBlockMoment)));
    cpBodySetCenterOfGravity(block_.get(), cpv(0, kCenterOfGravityY));
    for (const auto& corners : {bar, stem}) {
      AddShape(cpPolyShapeNew(block_.get(), 4, corners.data(), cpTransformIdentity, 0));
    }
    cpBodySetPosition(block_.get(), origin);
  }

  // released in reverse order: shapes, bodies, space
  std::unique_ptr<cpSpace, SpaceDeleter> space_;
  std::unique_ptr<cpBody, BodyDeleter> agent_, block_;
  std::vector<std::unique_ptr<cpShape, ShapeDeleter>> shapes_;
};

ChipmunkOracle::ChipmunkOracle() = default;
ChipmunkOracle::~ChipmunkOracle() = default;
ChipmunkOracle::ChipmunkOracle(ChipmunkOracle&&) noexcept = default;
ChipmunkOracle& ChipmunkOracle::operator=(ChipmunkOracle&&) noexcept = default;

void ChipmunkOracle::Reset(const State& start) { world_ = std::make_unique<World>(start); }

void ChipmunkOracle::Step(double target_x, double target_y) {
  world_->Step(cpv(target_x, target_y));
}

void ChipmunkOracle::Push(double dx, double dy) { world_->Push(cpv(dx, dy)); }

State ChipmunkOracle::Read() const { return world_->Read(); }

}  // namespace mjp::app
