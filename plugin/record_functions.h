#ifndef PLUGIN_RECORD_FUNCTIONS_H_
#define PLUGIN_RECORD_FUNCTIONS_H_

#include <mujoco/mujoco.h>

#include <cstdint>

// What the plugin needs of libmjpolicy_record.so (tasks/program/), which it opens at run time: data
// sets need more of the system than a policy does. All but two are the functions of
// tasks/program/mjpolicy_record.h, which says what they return.

extern "C" {

struct MjpRecorder;

// As mjp_record_open, of a model that a host compiled with its policy; it is copied.
MjpRecorder* mjp_record_open_model(const mjModel* model, const char* dataset, int width, int height,
                                   char* error, int error_size);
int mjp_record_begin(MjpRecorder* recorder, int64_t seed);
// Instead of mjp_record_step, after each step of the engine: `before` is where it began
// (kStateWithoutPlugins), `data` has its controls and where it led to. Nothing is
// written to `data`. 1: the task's episode is over. A negative number: the step does not follow
// from the recorded actions, and the episode can only be discarded.
int mjp_record_stepped(MjpRecorder* recorder, const mjModel* model, const mjData* data,
                       const mjtNum* before);
int mjp_record_keep(MjpRecorder* recorder);
int mjp_record_discard(MjpRecorder* recorder);
const char* mjp_record_error(const MjpRecorder* recorder);
int mjp_record_close(MjpRecorder* recorder);

}  // extern "C"

#endif  // PLUGIN_RECORD_FUNCTIONS_H_
