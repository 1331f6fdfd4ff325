#ifndef PLUGIN_PICTURES_RENDER_THREAD_H_
#define PLUGIN_PICTURES_RENDER_THREAD_H_

#include <functional>

namespace mjp {

// Runs `job` on the process's one rendering thread and waits for its end; what it throws is thrown
// here. Jobs of several callers run one after another. The thread starts with the first job and
// lives as long as the process, so that the GL context it owns outlives the instances that draw;
// it takes no signals. Throws Error(kEnvironment) in a child that
// fork() made of a process which has that thread: neither thread nor GL context are in it. From
// then on such a child ends without the handlers of exit() that its parent registered.
void RunOnRenderThread(const std::function<void()>& job);

// False in such a child: what OpenGL has there is to be left alone.
bool HasRenderThread();

}  // namespace mjp

#endif  // PLUGIN_PICTURES_RENDER_THREAD_H_
