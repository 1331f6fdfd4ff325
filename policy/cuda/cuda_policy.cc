#include "policy/cuda/cuda_policy.h"

#include <cuda_runtime_api.h>

#include <list>
#include <mutex>
#include <utility>

#include "base/float_environment.h"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/gpu_probe.h"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "policy/cuda/engine.h"
#include "policy/cuda/self_check.h"
#include "policy/input_check.h"
#include "policy/network_types.h"
#include "policy/pictures/gpu_picture.h"

namespace mjp {
namespace {

constexpr size_t kIdleEngines = 4;  // kept ready for the next instance with the same options

// Engines that no policy uses at the moment, most recently used first.
class EngineCache {
 public:
  // The process's cache; never destroyed, since the driver may go first.
  static EngineCache& Get() {
    static EngineCache& cache = *new EngineCache;
    return cache;
  }

  // The result of `work`, which makes engines: once more where the GPU has no room for it and idle
  // ones may hold the memory that is missing.
  template <typename Work>
  auto WithRoom(Work work) {
    const std::lock_guard one(making_);  // who else makes one waits for that memory
    try {
      return work();
    } catch (const OutOfDeviceMemory&) {
      if (!Clear()) throw;
    }
    return work();
  }

  std::unique_ptr<CudaEngine> Take(const std::shared_ptr<const Checkpoint>& checkpoint,
                                   const PolicyOptions& options) {
    if (auto engine = TakeIdle(*checkpoint, options)) return engine;
    const CudaNetwork& network = *NetworkTypeOf(checkpoint->config.type).cuda;
    return WithRoom([&] { return network.make(checkpoint, options); });
  }

  void Return(std::unique_ptr<CudaEngine> engine) {
    const std::lock_guard lock(mutex_);
    idle_.push_front(std::move(engine));
    if (idle_.size() > kIdleEngines) idle_.pop_back();
  }

 private:
  std::unique_ptr<CudaEngine> TakeIdle(const Checkpoint& checkpoint, const PolicyOptions& options) {
    const std::lock_guard lock(mutex_);
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      if (&(*it)->checkpoint() != &checkpoint || (*it)->options() != options) continue;
      std::unique_ptr<CudaEngine> engine = std::move(*it);
      idle_.erase(it);
      return engine;
    }
    return nullptr;
  }

  // Whether there was an idle engine; now there is none.
  bool Clear() {
    const std::lock_guard lock(mutex_);
    const bool any = !idle_.empty();
    idle_.clear();
    return any;
  }

  std::mutex making_;
  std::mutex mutex_;  // of the rest
  std::list<std::unique_ptr<CudaEngine>> idle_;
};

const char* PrecisionName(Precision p) {
  switch (p) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kFp16:
      return "fp16";
    case Precision::kBf16:
      return "bf16";
    case Precision::kAuto:
      break;
  }
  return "auto";
}

class CudaPolicy final : public Policy {
 public:
  CudaPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
      : Policy(std::move(checkpoint), options),
        engine_(EngineCache::Get().Take(checkpoint_, options_)) {}
  ~CudaPolicy() override {
    if (pending_ != nullptr) {
      PolicyOutput unread;
      try {
        const DeviceScope device(options_.device);
        engine_->Wait(unread);
      } catch (const Error&) {
        healthy_ = false;
      }
    }
    if (healthy_) EngineCache::Get().Return(std::move(engine_));
  }

  void Infer(const PolicyInput& input, PolicyOutput& output) override {
    PolicyInput stays = input;
    stays.frames_stay = true;
    Launch(stays, output);
    Wait();
  }

  void Launch(const PolicyInput& input, PolicyOutput& output) override {
    const DefaultFloatEnvironment arithmetic;
    CheckInput(*checkpoint_, options_, input);
    KeepPictures(input);
    Guarded([&] { engine_->Launch(input, output.trace); });
    pending_ = &output;
  }

  void Wait() override {
    const DefaultFloatEnvironment arithmetic;
    PolicyOutput* output = std::exchange(pending_, nullptr);
    if (output == nullptr) return;
    Guarded([&] { engine_->Wait(*output); });
    pictures_.clear();
    CheckActions(output->actions);
  }

  int device_ordinal() const override { return options_.device; }

  std::string Description() const override {
    const DeviceScope device(options_.device);
    return std::string("CUDA, ") + GpuTraits::Current().name + ", " +
           PrecisionName(options_.precision) + ", " + engine_->PlanText();
  }

 private:
  void KeepPictures(const PolicyInput& input) {
    for (const std::shared_ptr<const GpuPicture>& picture : input.gpu_pictures) {
      if (picture->device() == options_.device) continue;
      throw BadInput("policy input: a picture in the memory of GPU " +
                     std::to_string(picture->device()) + ", but the policy runs on GPU " +
                     std::to_string(options_.device) + "; give frames");
    }
    pictures_.assign(input.gpu_pictures.begin(), input.gpu_pictures.end());
  }

  // On the policy's device, whatever the thread's. An engine whose device failed must not be handed
  // to the next policy.
  template <typename Work>
  void Guarded(Work work) {
    try {
      const DeviceScope device(options_.device);
      work();
    } catch (const Error& error) {
      healthy_ = healthy_ && error.code() == ExitCode::kBadInput;
      throw;
    }
  }

  std::vector<std::shared_ptr<const GpuPicture>> pictures_;  // that the decision under way reads
  std::unique_ptr<CudaEngine> engine_;
  PolicyOutput* pending_ = nullptr;  // of the decision under way
  bool healthy_ = true;
};

}  // namespace

bool CudaUsable(std::string* why) {
  try {
    static_cast<void>(GpuTraits::Current());
    return true;
  } catch (const Error& error) {
    *why = error.what();
    return false;
  }
}

void RequireCuda(const std::string& what, const std::string& instead) {
  try {
    static_cast<void>(GpuTraits::Current());
  } catch (const Error& error) {
    throw Error(error.code(), what + ": " + error.what() + "; " + instead);
  }
}

void CheckRgb(const Checkpoint& checkpoint) {
  for (const CameraFeature& camera : checkpoint.config.cameras) {
    if (camera.channels != 3)
      throw Unsupported(camera.name + ": the GPU backend takes RGB pictures; use the CPU backend");
  }
}

std::unique_ptr<Policy> CreateCudaPolicy(std::shared_ptr<const Checkpoint> checkpoint,
                                         const PolicyOptions& options) {
  PolicyOptions resolved = options;
  if (resolved.device < 0) resolved.device = CurrentDevice();
  const DeviceScope device(resolved.device);
  RequireCuda("backend cuda", "choose the backend cpu or auto");
  const CudaNetwork& network = *NetworkTypeOf(checkpoint->config.type).cuda;
  network.check(*checkpoint);
  resolved.backend = Backend::kCuda;
  if (resolved.precision == Precision::kAuto) resolved.precision = Precision::kFp16;
  network.resolve(*checkpoint, resolved);
  if (resolved.self_check)
    EngineCache::Get().WithRoom([&] { RequireSelfCheck(checkpoint, resolved); });
  return std::make_unique<CudaPolicy>(std::move(checkpoint), resolved);
}

}  // namespace mjp
