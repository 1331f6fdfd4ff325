#include <cstdio>
#include <exception>
#include <string>

#include "tasks/program/mjpolicy_record.h"
#include "tasks/program/program_recorder.h"

#define MJP_RECORD_EXPORT extern "C" __attribute__((visibility("default")))

struct MjpRecorder {
  mjp::app::ProgramRecorder recorder;
  std::string error;
};

namespace {

// Runs `function`, which returns an int; what it throws is kept, and -1 returned.
template <typename Function>
int Kept(MjpRecorder* recorder, Function&& function) noexcept {
  recorder->error.clear();
  try {
    return function(recorder->recorder);
  } catch (const std::exception& error) {
    recorder->error = error.what();
  } catch (...) {
    recorder->error = "unknown exception";
  }
  return -1;
}

}  // namespace

MJP_RECORD_EXPORT MjpRecorder* mjp_record_open(const char* task_file, const char* dataset,
                                               int width, int height, char* error,
                                               int error_size) {
  std::string why = "a task file and a data set are needed";
  try {
    if (task_file && dataset) {
      return new MjpRecorder{
          mjp::app::ProgramRecorder(task_file, dataset, {width, height, false}), ""};
    }
  } catch (const std::exception& thrown) {
    why = thrown.what();
  } catch (...) {
    why = "unknown exception";
  }
  if (error && error_size > 0) {
    std::snprintf(error, static_cast<size_t>(error_size), "%s", why.c_str());
  }
  return nullptr;
}

MJP_RECORD_EXPORT const mjModel* mjp_record_model(const MjpRecorder* recorder) {
  return recorder->recorder.model();
}

MJP_RECORD_EXPORT int mjp_record_begin(MjpRecorder* recorder, int64_t seed) {
  return Kept(recorder, [&](auto& own) {
    own.Begin(seed);
    return 0;
  });
}

MJP_RECORD_EXPORT int mjp_record_step(MjpRecorder* recorder, const mjModel* model, mjData* data) {
  return Kept(recorder, [&](auto& own) { return own.Step(model, data) ? 1 : 0; });
}

MJP_RECORD_EXPORT int mjp_record_keep(MjpRecorder* recorder) {
  return Kept(recorder, [](auto& own) { return own.Keep() ? 0 : 1; });
}

MJP_RECORD_EXPORT int mjp_record_discard(MjpRecorder* recorder) {
  return Kept(recorder, [](auto& own) {
    own.Discard();
    return 0;
  });
}

MJP_RECORD_EXPORT int64_t mjp_record_episodes(const MjpRecorder* recorder) {
  return recorder->recorder.episodes();
}

MJP_RECORD_EXPORT const char* mjp_record_error(const MjpRecorder* recorder) {
  return recorder->error.c_str();
}

MJP_RECORD_EXPORT int mjp_record_close(MjpRecorder* recorder) {
  if (!recorder) return 0;
  const int code = Kept(recorder, [](auto& own) {
    own.Finish();
    return 0;
  });
  if (code < 0) std::fprintf(stderr, "mjpolicy: %s\n", recorder->error.c_str());
  delete recorder;
  return code;
}
