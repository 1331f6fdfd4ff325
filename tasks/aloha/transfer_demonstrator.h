#ifndef TASKS_ALOHA_TRANSFER_DEMONSTRATOR_H_
#define TASKS_ALOHA_TRANSFER_DEMONSTRATOR_H_

#include "tasks/demonstration/task_code.h"

namespace mjp::app {

// ALOHA TransferCube's expert (expert.h) for models/aloha_transfer_cube.xml and its like, each
// episode in a style of its own.
TaskCodeEntry AlohaTransferCode();

}  // namespace mjp::app

#endif  // TASKS_ALOHA_TRANSFER_DEMONSTRATOR_H_
