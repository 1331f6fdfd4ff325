#include "tasks/task_code.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tasks/aloha/insertion/insertion_demonstrator.h"
#include "tasks/aloha/transfer_demonstrator.h"
#include "tasks/mjcf/words.h"
#include "tasks/pusht/demonstration/pusht_code.h"
#include "tasks/task_names.h"

namespace mjp::app {
namespace {

const TaskCodeEntry* EntryOf(const TaskFile& file) {
  static const std::vector<TaskCodeEntry> entries = {PushtCode(), AlohaTransferCode(),
                                                     AlohaInsertionCode()};
  const std::string code = file.code();
  const auto found = std::ranges::find_if(entries, [&](const TaskCodeEntry& entry) {
    return entry.of_code ? entry.name == code : code.empty() && entry.name == file.name();
  });
  if (found != entries.end()) return &*found;
  if (code.empty()) return nullptr;
  throw Place{"task.code", ""}.Refuse(NoSuch("task of code", code, TaskNames()));
}

}  // namespace

std::unique_ptr<TaskCode> MakeTaskCode(const TaskFile& file) {
  const TaskCodeEntry* entry = EntryOf(file);
  return entry && entry->make_code ? entry->make_code(file) : nullptr;
}

bool HasExpert(const TaskFile& file) {
  const TaskCodeEntry* entry = EntryOf(file);
  return entry && entry->make_expert;
}

std::unique_ptr<Demonstrator> MakeExpert(const TaskFile& file) {
  const TaskCodeEntry* entry = EntryOf(file);
  if (entry && entry->make_expert) return entry->make_expert(file);
  throw BadInput("the task " + file.name() +
                 " has no expert here: record it by its planner (--by planner) or by a checkpoint");
}

}  // namespace mjp::app
