#include "plugin/recording.h"

#include <dlfcn.h>

#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "base/dynamic_library.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/program/own_program.h"
#include "plugin/guard.h"
#include "plugin/notices.h"
#include "plugin/state.h"

namespace mjp {
namespace {

namespace fs = std::filesystem;

// The functions of libmjpolicy_record.so, which lies beside this library, a folder above it, or in
// the lib folder beside a program's own.
struct Functions {
  Functions()
      : library(Paths(), RTLD_NOW | RTLD_LOCAL, "; it is built and installed with mjpolicy") {
    library.Find(open, "mjp_record_open_model");
    library.Find(begin, "mjp_record_begin");
    library.Find(stepped, "mjp_record_stepped");
    library.Find(keep, "mjp_record_keep");
    library.Find(discard, "mjp_record_discard");
    library.Find(error, "mjp_record_error");
    library.Find(close, "mjp_record_close");
  }

  static std::vector<std::string> Paths() {
    const std::string file = "libmjpolicy_record.so";
    const fs::path folder = FindOwnBinary().parent_path(), above = folder.parent_path();
    return {(folder / file).string(), (above / file).string(), (above / "lib" / file).string(),
            file};
  }

  DynamicLibrary library;
  decltype(mjp_record_open_model)* open = nullptr;
  decltype(mjp_record_begin)* begin = nullptr;
  decltype(mjp_record_stepped)* stepped = nullptr;
  decltype(mjp_record_keep)* keep = nullptr;
  decltype(mjp_record_discard)* discard = nullptr;
  decltype(mjp_record_error)* error = nullptr;
  decltype(mjp_record_close)* close = nullptr;
};

// Throws EnvironmentError where there is no such library.
const Functions& Library() {
  static const Functions& functions = *new Functions;
  return functions;
}

// Who writes into a folder.
struct Writers {
  ForkMutex mutex;
  std::map<std::string, const Recording*> of_folder;
  uint64_t generation = ForkGeneration();  // a child of fork() begins without any
};

// never destroyed: a host may step while the process ends
Writers& TheWriters() {
  static Writers& writers = *new Writers;
  return writers;
}

bool BecomeWriter(const std::string& folder, const Recording* recording) {
  Writers& writers = TheWriters();
  const std::lock_guard lock(writers.mutex);
  if (writers.generation != ForkGeneration()) writers.of_folder.clear();
  writers.generation = ForkGeneration();
  return writers.of_folder.emplace(folder, recording).first->second == recording;
}

void LeaveFolder(const std::string& folder, const Recording* recording) {
  const std::lock_guard lock(TheWriters().mutex);
  const auto found = TheWriters().of_folder.find(folder);
  if (found != TheWriters().of_folder.end() && found->second == recording) {
    TheWriters().of_folder.erase(found);
  }
}

std::string WholePath(const std::string& folder) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::absolute(folder, error), error);
  return error ? folder : path.string();
}

}  // namespace

Recording::Recording(const mjModel* model, int instance, const Config& config,
                     const PolicyConfig& policy)
    : instance_(instance),
      name_(InstanceName(model, instance)),
      folder_(WholePath(config.record)),
      period_(config.period),
      generation_(ForkGeneration()),
      original_(mj_copyModel(nullptr, model)) {
  if (policy.cameras.empty()) return;
  width_ = policy.cameras[0].width;
  height_ = policy.cameras[0].height;
}

Recording::~Recording() {
  if (generation_ != ForkGeneration()) return;  // it is the parent's
  End();
  if (!recorder_) return;
  if (Library().close(recorder_) < 0) WarnOnce(Library().error(recorder_));
  if (lost_ > 0) {
    Say(std::to_string(lost_) + " of " + std::to_string(lost_ + kept_) +
        " episodes were not recorded");
  }
  LeaveFolder(folder_, this);
}

void Recording::Before(const mjModel* model, const mjData* data) {
  if (refused_) return;
  before_.resize(static_cast<size_t>(mj_stateSize(model, kStateWithoutPlugins)));
  mj_getState(model, data, before_.data(), kStateWithoutPlugins);
  begin_ = data->time;
}

void Recording::After(const mjModel* model, const mjData* data, uint64_t seed) {
  if (before_.empty()) return;
  if (generation_ != ForkGeneration()) {
    return Refuse(model, "it was made before fork(), and what it records stays with the parent");
  }
  std::vector<mjtNum> before;
  std::swap(before, before_);
  if (begin_ != end_) End();  // another time than the last step led to
  end_ = data->time;
  if (episode_ == Episode::kNone) {
    if (!BeginsControlStep(model) || !Open(model)) return;
    const int begun = Library().begin(recorder_, static_cast<int64_t>(seed & UINT32_MAX));
    if (begun < 0) Lose(Library().error(recorder_));
    episode_ = begun < 0 ? Episode::kOver : Episode::kRunning;
  }
  if (episode_ != Episode::kRunning) return;
  const int code = Library().stepped(recorder_, model, data, before.data());
  if (code < 0) {
    Lose(std::string("nothing of this episode: ") + Library().error(recorder_));
    Library().discard(recorder_);
    episode_ = Episode::kOver;
  } else if (code == 1) {
    Keep();
    episode_ = Episode::kOver;
  }
}

// Whether the step from begin_ on is the first of a control step, as PolicyInstance counts them.
bool Recording::BeginsControlStep(const mjModel* model) const {
  const double timestep = model->opt.timestep;
  const double tick = std::floor((begin_ + 0.5 * timestep) / period_);
  return tick != std::floor((begin_ - 0.5 * timestep) / period_);
}

bool Recording::Open(const mjModel* model) {
  if (recorder_) return true;
  if (!BecomeWriter(folder_, this)) {
    episode_ = Episode::kOver;  // the next one may be its own
    if (FirstNotice(model, instance_, Notice::kNotRecorded)) {
      WarnOnce("another simulation of this process writes there; give each a folder of its own");
    }
    return false;
  }
  std::string why(1000, '\0');
  try {
    recorder_ = Library().open(original_.get(), folder_.c_str(), width_, height_, why.data(),
                               static_cast<int>(why.size()));
    why.resize(why.find('\0'));
  } catch (const std::exception& error) {
    why = error.what();
  }
  original_.reset();
  if (recorder_) return true;
  LeaveFolder(folder_, this);
  Refuse(model, why);
  return false;
}

void Recording::Refuse(const mjModel* model, const std::string& why) {
  refused_ = true;
  before_.clear();
  if (FirstNotice(model, instance_, Notice::kNotRecorded)) WarnOnce(why);
}

void Recording::End() {
  if (episode_ == Episode::kRunning && generation_ == ForkGeneration()) Keep();
  episode_ = Episode::kNone;
  before_.clear();
}

void Recording::Keep() {
  const int code = Library().keep(recorder_);
  if (code == 0) ++kept_;
  if (code < 0) Lose(Library().error(recorder_));
}

void Recording::Lose(const std::string& why) {
  ++lost_;
  WarnOnce(why);
}

void Recording::WarnOnce(const std::string& what) {
  std::string cause = what;
  std::erase_if(cause, [](unsigned char c) { return std::isdigit(c); });
  if (said_.insert(cause).second) Say(what);
}

void Recording::Say(const std::string& what) const {
  Warn((name_ + ", recording into " + folder_ + ": " + what).c_str());
}

}  // namespace mjp
