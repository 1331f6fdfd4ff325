#include "tasks/aloha/transfer_demonstrator.h"

#include "tasks/aloha/arms/arms_demonstrator.h"
#include "tasks/aloha/expert.h"

namespace mjp::app {

TaskCodeEntry AlohaTransferCode() {
  return {false, "aloha_transfer_cube", nullptr, [](const TaskFile& file) {
            return std::make_unique<ArmsDemonstrator<TransferExpert, DrawStyle>>(
                file, "models/aloha_transfer_cube.xml");
          }};
}

}  // namespace mjp::app
