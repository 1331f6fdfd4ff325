#ifndef TASKS_ALOHA_INSERTION_INSERTION_DEMONSTRATOR_H_
#define TASKS_ALOHA_INSERTION_INSERTION_DEMONSTRATOR_H_

#include "tasks/demonstration/task_code.h"

namespace mjp::app {

// Insertion's expert (insertion_plan.h) for models/aloha_insertion.xml and its like, each episode
// in a style of its own.
TaskCodeEntry AlohaInsertionCode();

}  // namespace mjp::app

#endif  // TASKS_ALOHA_INSERTION_INSERTION_DEMONSTRATOR_H_
