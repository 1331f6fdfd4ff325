#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "base/c_library/handles.h"
#include "base/error.h"
#include "base/fork.h"
#include "plugin/record_functions.h"
#include "tasks/program/mjpolicy_record.h"
#include "tasks/program/program_recorder.h"

#define MJP_RECORD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Object {
  mjp::app::ProgramRecorder recorder;
  const uint64_t generation = mjp::ForkGeneration();
  std::atomic_flag in_use = {};  // by a thread, in one of the functions
};

thread_local std::string last_error;  // of this thread's last call

mjp::Handles<MjpRecorder, Object>& Open() {
  static auto& handles = *new mjp::Handles<MjpRecorder, Object>(
      "this MjpRecorder was never opened, or is closed already: use what mjp_record_open "
      "returned, until mjp_record_close");
  return handles;
}

// What `function` returns, or -1 and the last error.
template <typename Function>
int64_t Guard(Function&& function) noexcept {
  last_error.clear();
  try {
    return function();
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "unknown exception";
  }
  return -1;
}

// Runs `function`, which takes a ProgramRecorder& and returns a number, for this thread alone.
template <typename Function>
int64_t With(const MjpRecorder* recorder, Function&& function) noexcept {
  return Guard([&]() -> int64_t {
    const std::shared_ptr<Object> object = Open().Find(recorder);
    if (object->generation != mjp::ForkGeneration()) {
      throw mjp::Error(mjp::ExitCode::kUsage,
                       "this MjpRecorder was opened before fork(), and its threads stay with the "
                       "parent: open one in the child");
    }
    const mjp::Use use(object->in_use,
                       "this MjpRecorder is in use by another thread: open one for each thread, "
                       "with a data set of its own");
    return function(object->recorder);
  });
}

// What `make` opens; null, and the error written out, where it cannot.
template <typename Make>
MjpRecorder* OpenBy(Make&& make, char* error, int error_size) noexcept {
  MjpRecorder* recorder = nullptr;
  Guard([&] {
    recorder = Open().Add(std::shared_ptr<Object>(make()));
    return 0;
  });
  if (!recorder && error && error_size > 0) {
    std::snprintf(error, static_cast<size_t>(error_size), "%s", last_error.c_str());
  }
  return recorder;
}

}  // namespace

MJP_RECORD_EXPORT MjpRecorder* mjp_record_open(const char* task_file, const char* dataset,
                                               int width, int height, char* error, int error_size) {
  const auto make = [&] {
    if (!task_file || !dataset) {
      throw mjp::Error(mjp::ExitCode::kUsage, "a task file and a data set are needed");
    }
    return new Object{
        mjp::app::ProgramRecorder(std::string(task_file), dataset, {width, height, false})};
  };
  return OpenBy(make, error, error_size);
}

MJP_RECORD_EXPORT MjpRecorder* mjp_record_open_model(const mjModel* model, const char* dataset,
                                                     int width, int height, char* error,
                                                     int error_size) {
  const auto make = [&] {
    if (!model || !dataset) {
      throw mjp::Error(mjp::ExitCode::kUsage, "a model and a data set are needed");
    }
    return new Object{mjp::app::ProgramRecorder(model, dataset, {width, height, false})};
  };
  return OpenBy(make, error, error_size);
}

MJP_RECORD_EXPORT const mjModel* mjp_record_model(const MjpRecorder* recorder) {
  const mjModel* model = nullptr;
  With(recorder, [&](auto& own) {
    model = own.model();
    return 0;
  });
  return model;
}

MJP_RECORD_EXPORT int mjp_record_begin(MjpRecorder* recorder, int64_t seed) {
  return static_cast<int>(With(recorder, [&](auto& own) {
    own.Begin(seed);
    return 0;
  }));
}

MJP_RECORD_EXPORT int mjp_record_step(MjpRecorder* recorder, const mjModel* model, mjData* data) {
  return static_cast<int>(With(recorder, [&](auto& own) { return own.Step(model, data) ? 1 : 0; }));
}

MJP_RECORD_EXPORT int mjp_record_stepped(MjpRecorder* recorder, const mjModel* model,
                                         const mjData* data, const mjtNum* before) {
  return static_cast<int>(
      With(recorder, [&](auto& own) { return own.Stepped(model, data, before) ? 1 : 0; }));
}

MJP_RECORD_EXPORT int mjp_record_keep(MjpRecorder* recorder) {
  return static_cast<int>(With(recorder, [](auto& own) { return own.Keep() ? 0 : 1; }));
}

MJP_RECORD_EXPORT int mjp_record_discard(MjpRecorder* recorder) {
  return static_cast<int>(With(recorder, [](auto& own) {
    own.Discard();
    return 0;
  }));
}

MJP_RECORD_EXPORT int64_t mjp_record_episodes(const MjpRecorder* recorder) {
  return With(recorder, [](auto& own) { return own.episodes(); });
}

MJP_RECORD_EXPORT const char* mjp_record_error(const MjpRecorder* /*recorder*/) {
  return last_error.c_str();
}

MJP_RECORD_EXPORT int mjp_record_close(MjpRecorder* recorder) {
  if (!recorder) return 0;
  const int code = static_cast<int>(Guard([&] {
    const std::shared_ptr<Object> object = Open().Find(recorder);
    if (object->generation != mjp::ForkGeneration()) {
      Open().Retire(recorder);
      return 0;
    }
    const mjp::Use use(object->in_use,
                       "this MjpRecorder is in use by another thread: close it when that is done");
    Open().Remove(recorder);
    object->recorder.Finish();
    return 0;
  }));
  if (code < 0) std::fprintf(stderr, "mjpolicy: %s\n", last_error.c_str());
  return code;
}
