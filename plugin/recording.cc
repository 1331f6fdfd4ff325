#include "plugin/recording.h"

#include <dlfcn.h>

#include <cctype>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
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

// Texts of one cause are the same.
std::string WithoutNumbers(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isdigit(c); });
  return text;
}

constexpr int kPlace = mjSTATE_TIME | mjSTATE_PHYSICS;

size_t HashOf(const std::vector<mjtNum>& numbers) {
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(mjtNum)});
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
        " episodes were not recorded" + (refused_ ? ", and none after them" : ""));
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
  // The step was tried before, as finite differences do. The recorder sees whether the one that is
  // taken in the end is another: the next control step then begins elsewhere.
  const bool again = !last_.empty() && begin_ == from_;
  Place from(static_cast<size_t>(mj_stateSize(model, kPlace))), to(from.size());
  mj_extractState(model, before.data(), kStateWithoutPlugins, from.data(), kPlace);
  mj_getState(model, data, to.data(), kPlace);
  if (ComesBack(from, std::move(to), again)) return TakesTurns(model);
  if (again && episode_ == Episode::kRunning) {
    if (steps_ > 1) return;
    Library().discard(recorder_);  // an episode begins with the last of the tries
    episode_ = Episode::kNone;
  } else if (!again && begin_ != end_) {
    KeepRunning();  // another time than the last step led to
  }
  from_ = begin_;
  end_ = data->time;
  if (episode_ == Episode::kNone) Begin(model, seed);
  if (episode_ != Episode::kRunning) return;
  ++steps_;
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

void Recording::Begin(const mjModel* model, uint64_t seed) {
  if (!BeginsControlStep(model) || !Open(model)) return;
  const int begun = Library().begin(recorder_, static_cast<int64_t>(seed & UINT32_MAX));
  if (begun < 0) Lose(Library().error(recorder_));
  episode_ = begun < 0 ? Episode::kOver : Episode::kRunning;
  steps_ = 0;
}

bool Recording::ComesBack(const Place& from, Place to, bool again) {
  constexpr size_t kMost = 1 << 16;
  bool turns = false;
  if (!last_.empty() && from != last_) {
    const size_t place = HashOf(from);
    turns = !again && left_again_.contains(place);
    if (left_.size() + left_again_.size() >= kMost) left_.clear(), left_again_.clear();
    (came_back_ ? left_again_ : left_).insert(HashOf(last_));
    // once alone it is a start that was saved
    if (!again) came_back_ = left_.contains(place) || turns;
  }
  last_ = std::move(to);
  return turns;
}

void Recording::TakesTurns(const mjModel* model) {
  if (episode_ == Episode::kRunning) {
    ++lost_;
    Library().discard(recorder_);
  }
  episode_ = Episode::kOver;
  std::string why =
      "several simulations take turns in one mjData, or one goes back and forth, and nothing more "
      "is recorded: make a batch with persistent = 1, which records one of its members, and try "
      "ahead in a copy";
  if (kept_ > 0) {
    why += "; " + std::to_string(kept_) +
           " episodes are in it already, which may be pieces: look at them, or record anew into "
           "another folder";
  }
  Refuse(model, why);
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
    SayWhyNot(model,
              "another simulation of this process writes there; give each a folder of its own");
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
  if (recorder_) {
    ForgetNotice(model, instance_, Notice::kNotRecorded);
    return true;
  }
  LeaveFolder(folder_, this);
  Refuse(model, why);
  return false;
}

void Recording::Refuse(const mjModel* model, const std::string& why) {
  refused_ = true;
  before_.clear();
  SayWhyNot(model, why);
}

void Recording::SayWhyNot(const mjModel* model, const std::string& why) {
  if (FirstNotice(model, instance_, Notice::kNotRecorded, WithoutNumbers(why))) WarnOnce(why);
}

void Recording::End() {
  KeepRunning();
  before_.clear();
  last_.clear();
  left_.clear(), left_again_.clear();
  came_back_ = false;
}

void Recording::KeepRunning() {
  if (episode_ == Episode::kRunning && generation_ == ForkGeneration()) Keep();
  episode_ = Episode::kNone;
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
  if (said_.insert(WithoutNumbers(what)).second) Say(what);
}

void Recording::Say(const std::string& what) const {
  Warn((name_ + ", recording into " + folder_ + ": " + what).c_str());
}

}  // namespace mjp
