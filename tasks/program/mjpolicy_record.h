/* Records what a program of your own does with a robot as a LeRobotDataset: the program has its own
   loop around mj_step and says what it drives; libmjpolicy_record.so notes it and writes episodes.
   Not in one process with libmjpolicy.so, which is the same plugin a second time: where the policy
   itself is in the loop, its attribute `record` does this.
   docs/tutorials/6-robot-arm.md has an example in Python. */
#ifndef TASKS_PROGRAM_MJPOLICY_RECORD_H_
#define TASKS_PROGRAM_MJPOLICY_RECORD_H_

#include <mujoco/mujoco.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MjpRecorder MjpRecorder;

/* Opens a recorder for a task file (docs/tasks.md), whose policy says what is seen and driven; its
   checkpoint is not needed. `dataset` is a folder, new or recorded so before. Pictures have width x
   height pixels; 0 and 0: the camera's resolution, else 320 x 240. NULL where it cannot: `error`,
   of `error_size` bytes, then says why. */
MjpRecorder* mjp_record_open(const char* task_file, const char* dataset, int width, int height,
                             char* error, int error_size);

/* The task file's model without its policy, for programs in C: it lives as long as the recorder. A
   program may simulate another compilation of it, with the same bodies, joints and actuators. */
const mjModel* mjp_record_model(const MjpRecorder* recorder);

/* All functions below return a negative number where they fail; mjp_record_error says why, to the
   thread that called and until its next call. A recorder is for one thread at a time and for the
   process that opened it: another thread, a child of fork() and a closed recorder are refused. */

/* Begins an episode with the next mjp_record_step; one that was begun before is forgotten. `seed`
   stands beside each frame: 0 to 2^32 - 1, such as what your start is drawn from. */
int mjp_record_begin(MjpRecorder* recorder, int64_t seed);

/* To be called before each mj_step, once the controls are set. Where a control step begins, the
   controls of the policy's actuators are noted, rounded to what is written, and 1 is returned; up
   to the next they are held, and 0 is returned. The model may be recoloured, resized or relit
   between episodes, not within one; textures and meshes are those of the task file. */
int mjp_record_step(MjpRecorder* recorder, const mjModel* model, mjData* data);

/* Keeps the control steps that are over. To be called before the simulation is reset or deleted:
   how the last step ended is read from it. When it returns 0 the episode is on the disk, whatever
   is killed then. It was played again from its first state and its actions: where any state is not
   the same, bit for bit, it fails, and nothing is kept. What is moved by anything but these
   controls (a mocap body, forces, other actuators) does that. 1: there was no control step. */
int mjp_record_keep(MjpRecorder* recorder);

/* Forgets the episode. */
int mjp_record_discard(MjpRecorder* recorder);

/* Episodes of the data set that cannot be lost any more. */
int64_t mjp_record_episodes(const MjpRecorder* recorder);

/* Why the last call of this thread failed; "": it did not. */
const char* mjp_record_error(const MjpRecorder* recorder);

/* Waits until all kept episodes can be read, and closes the recorder. NULL is allowed. */
int mjp_record_close(MjpRecorder* recorder);

#ifdef __cplusplus
}
#endif

#endif /* TASKS_PROGRAM_MJPOLICY_RECORD_H_ */
