#ifndef TASKS_RECORDING_VIDEO_CONTAINER_H_
#define TASKS_RECORDING_VIDEO_CONTAINER_H_

#include <cstdint>
#include <string>

namespace mjp::app {

// Why `file`, an .mp4 or .avi of this project's writers by its first bytes, cannot be played to its
// end: cut off, without its index, or not of `pictures` pictures (-1: any number but none). "" if
// it is whole. Reads the index, not the pictures. Throws Error if the file cannot be opened or
// read: nothing is known of it then.
std::string VideoFault(const std::string& file, int64_t pictures = -1);

// Name of the file that holds the video called `name` while this process writes it, and whether a
// name is such a one.
std::string UnfinishedVideoName(const std::string& name);
bool IsUnfinishedVideo(const std::string& name);

}  // namespace mjp::app

#endif  // TASKS_RECORDING_VIDEO_CONTAINER_H_
