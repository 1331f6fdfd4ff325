#ifndef TASKS_TASK_NAMES_H_
#define TASKS_TASK_NAMES_H_

#include <string>
#include <vector>

// The tasks that are code of this project, by the names that --task and run.json have for them.

namespace mjp::app {

inline constexpr char kPusht[] = "pusht";

// What a command takes where no task is named, and what a run.json of an earlier build is about.
inline constexpr const char* kDefaultTask = kPusht;

// All of them.
std::vector<std::string> TaskNames();

// What the score of a task is the mean of, for people. Other tasks than these are files.
std::string ScoreMeaning(const std::string& task);

}  // namespace mjp::app

#endif  // TASKS_TASK_NAMES_H_
