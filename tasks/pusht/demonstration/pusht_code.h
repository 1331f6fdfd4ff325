#ifndef TASKS_PUSHT_DEMONSTRATION_PUSHT_CODE_H_
#define TASKS_PUSHT_DEMONSTRATION_PUSHT_CODE_H_

#include "tasks/demonstration/task_code.h"

namespace mjp::app {

// Push-T's starts, coverage and planner for models/pusht_policy.xml and its like.
TaskCodeEntry PushtCode();

}  // namespace mjp::app

#endif  // TASKS_PUSHT_DEMONSTRATION_PUSHT_CODE_H_
