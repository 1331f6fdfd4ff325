#include "tasks/aloha/insertion/insertion_demonstrator.h"

#include "tasks/aloha/arms/arms_demonstrator.h"
#include "tasks/aloha/insertion/insertion_plan.h"

namespace mjp::app {

TaskCodeEntry AlohaInsertionCode() {
  return {false, "aloha_insertion", nullptr, [](const TaskFile& file) {
            return std::make_unique<ArmsDemonstrator<InsertionExpert, DrawInsertionStyle>>(
                file, "models/aloha_insertion.xml");
          }};
}

}  // namespace mjp::app
