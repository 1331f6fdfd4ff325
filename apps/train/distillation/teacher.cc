#include "apps/train/distillation/teacher.h"

#include <string>

#include "base/error.h"
#include "policy/scheduler.h"
#include "policy/unet/unet_model.h"
#include "tasks/pusht/pictures/raster_source.h"

namespace mjp::app {
namespace {

bool SameRange(const mjp::FeatureStats& a, const mjp::FeatureStats& b) {
  return a.mode == b.mode && a.first == b.first && a.second == b.second;
}

// What of a teacher the trainer can give an observation to.
const mjp::UnetPolicyConfig& Checked(const mjp::Checkpoint& teacher) {
  const mjp::UnetPolicyConfig& config = mjp::UnetOf(teacher).config;
  const Architecture pusht = MakeArchitecture({});
  const auto refuse = [&](const std::string& why) {
    throw mjp::BadInput(teacher.directory + ": --distill " + why);
  };
  const bool pictures = config.cameras.size() == 1 &&
                        config.cameras[0].height == pusht.config.cameras[0].height &&
                        config.cameras[0].width == pusht.config.cameras[0].width;
  if (!pictures || config.environment_dim > 0 || config.n_obs_steps != pusht.config.n_obs_steps ||
      config.horizon != pusht.config.horizon ||
      !SameRange(teacher.stats.state, pusht.stats.state) ||
      !SameRange(teacher.stats.action, pusht.stats.action) ||
      !SameRange(teacher.stats.cameras.at(0), pusht.stats.cameras[0])) {
    refuse("needs a policy for Push-T as mjpolicy-train makes it from the planner");
  }
  if (config.encoder.crop_height > 0 || config.encoder.resize_height > 0) {
    refuse("does not crop or resize pictures: give a teacher that does not");
  }
  if (config.scheduler.kind == mjp::SamplerKind::kOneStep) {
    refuse("needs a policy that denoises: this one is a student already");
  }
  return config;
}

}  // namespace

NamedTensors TensorsOf(const mjp::Checkpoint& policy) {
  NamedTensors tensors;
  mjp::VisitTensors(mjp::LeRobotNames(), mjp::UnetOf(policy),
                    [&](const std::string& name, const mjp::Tensor& tensor) {
                      tensors.push_back({name, tensor});
                    });
  return tensors;
}

Teacher::Teacher(const std::shared_ptr<const mjp::Checkpoint>& checkpoint, int steps,
                 const at::Device& device, at::ScalarType type)
    : config_(Checked(*checkpoint)),
      parameters_(TensorsOf(*checkpoint), device, type),
      network_(config_, parameters_),
      schedule_(mjp::MakeSchedule(config_.scheduler, mjp::SamplerKind::kDdim, steps)) {
  parameters_.Freeze();
  for (const DenoiseStep& step : schedule_) {
    timesteps_.push_back(at::full({1}, step.timestep, at::TensorOptions(at::kLong).device(device)));
  }
}

at::Tensor Teacher::Chunk(const at::Tensor& noise, const at::Tensor& cond) const {
  at::Tensor x = noise;
  for (size_t k = 0; k < schedule_.size(); ++k) {
    const DenoiseStep& s = schedule_[k];
    const at::Tensor output =
        network_.Denoise(x.to(cond.scalar_type()), timesteps_[k].expand({noise.size(0)}), cond)
            .to(at::kFloat);
    // as kernels/shared/denoise.h, for whole tensors
    at::Tensor clean, predicted = output;
    switch (s.prediction) {
      case Prediction::kEpsilon:
        clean = (x - s.sqrt_1ma * output) / s.sqrt_a;
        break;
      case Prediction::kSample:
        clean = output;
        predicted = (x - s.sqrt_a * output) / s.sqrt_1ma;
        break;
      case Prediction::kV:
        clean = s.sqrt_a * x - s.sqrt_1ma * output;
        predicted = s.sqrt_a * output + s.sqrt_1ma * x;
        break;
    }
    if (s.clip > 0) clean = clean.clamp(-s.clip, s.clip);
    x = s.x0_scale * clean + s.eps_scale * predicted;
  }
  return x;
}

Architecture StudentOf(const mjp::Checkpoint& teacher, const Execution& execution) {
  Architecture student{Checked(teacher), teacher.stats, {}, {}};
  student.looks = {{student.config.cameras[0].name, RasterLook()}};
  student.config.scheduler.kind = mjp::SamplerKind::kOneStep;
  student.config.scheduler.prediction = mjp::PredictionType::kSample;
  student.config.scheduler.inference_steps = 1;
  student.config.trained_prefix = false;  // whatever the teacher's: a student learns whole chunks
  Apply(execution, student.config, student.config.scheduler);
  return student;
}

}  // namespace mjp::app
